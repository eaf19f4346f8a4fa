/**
 * Counters of the route stage. One record for all parts, so that metrics read one object; each part
 * increments only its own fields.
 */

export interface RouteCounters {
  /** Slot events processed. */
  slotEvents: number;
  /** Slot events without a valid slot number; ignored. */
  slotEventsInvalid: number;
  /** Slot events implausibly far ahead of the others when they arrived. */
  slotEventsFarAhead: number;
  /** Times the estimate went back, after long silence or because the sources contradict it. */
  slotRewinds: number;
  /** Times the cluster stood still, and the estimate returned to the slot announced last. */
  slotStalls: number;
  /** Slots that passed by the wall clock, without an event. */
  slotsExtrapolated: number;
  /** Epochs added to the schedule. */
  epochsSet: number;
  /** Epochs rejected because their size or number is invalid. */
  epochsRejected: number;
  /** Slot indexes outside their epoch; ignored. */
  scheduleIndexesInvalid: number;
  /** Times the table of contacts was replaced. */
  contactsSet: number;
  /** Contacts with an invalid address; ignored. */
  contactsInvalid: number;
  /** Contacts beyond the table's limit; ignored. */
  contactsOverflow: number;
  /** Times a list of delinquent leaders was ignored because it names most of the cluster. */
  delinquentIgnored: number;
  /** Times a plan was computed. */
  plansMade: number;
  /** Plans that differed from the previous one and were published. */
  plansPublished: number;
}

export function createRouteCounters(): RouteCounters {
  return {
    slotEvents: 0,
    slotEventsInvalid: 0,
    slotEventsFarAhead: 0,
    slotRewinds: 0,
    slotStalls: 0,
    slotsExtrapolated: 0,
    epochsSet: 0,
    epochsRejected: 0,
    scheduleIndexesInvalid: 0,
    contactsSet: 0,
    contactsInvalid: 0,
    contactsOverflow: 0,
    delinquentIgnored: 0,
    plansMade: 0,
    plansPublished: 0,
  };
}
