/**
 * What the route stage counts. One record for all its parts, so that metrics read one object; each
 * part increments only its own fields.
 */

export interface RouteCounters {
  /** Slot events that were taken in. */
  slotEvents: number;
  /** Slot events with something that is no slot number; ignored. */
  slotEventsInvalid: number;
  /** Slot events too far ahead of the others to be believed when they came. */
  slotEventsFarAhead: number;
  /** Times the estimate was set back, because the feed was silent for long or denies it. */
  slotRewinds: number;
  /** Slots that passed by the wall clock alone, without an event. */
  slotsExtrapolated: number;
  /** Epochs taken into the schedule. */
  epochsSet: number;
  /** Epochs refused because their size or number makes no sense. */
  epochsRefused: number;
  /** Slot indexes of a schedule that lie outside its epoch; ignored. */
  scheduleIndexesInvalid: number;
  /** Times the table of contacts was replaced. */
  contactsSet: number;
  /** Contacts whose address is none; ignored. */
  contactsInvalid: number;
  /** Contacts beyond the bound of the table; ignored. */
  contactsOverflow: number;
  /** Times a list of delinquent leaders was ignored, because it names most of the cluster. */
  delinquentIgnored: number;
  /** Times a plan was computed. */
  plansMade: number;
  /** Plans that differed from the one before and were published. */
  plansPublished: number;
}

export function createRouteCounters(): RouteCounters {
  return {
    slotEvents: 0,
    slotEventsInvalid: 0,
    slotEventsFarAhead: 0,
    slotRewinds: 0,
    slotsExtrapolated: 0,
    epochsSet: 0,
    epochsRefused: 0,
    scheduleIndexesInvalid: 0,
    contactsSet: 0,
    contactsInvalid: 0,
    contactsOverflow: 0,
    delinquentIgnored: 0,
    plansMade: 0,
    plansPublished: 0,
  };
}
