/**
 * Counters of the route stage. One record for all parts, so that metrics read one object; each part
 * increments only its own fields.
 */

export class RouteCounters {
  /** Slot events processed. */
  slotEvents = 0;
  /** Slot events without a valid slot number; ignored. */
  slotEventsInvalid = 0;
  /** Slot events implausibly far ahead of the others when they arrived. */
  slotEventsFarAhead = 0;
  /** Times the estimate went back, after long silence or because the sources contradict it. */
  slotRewinds = 0;
  /** Times the cluster stood still, and the estimate returned to the slot announced last. */
  slotStalls = 0;
  /** Slots that passed by the wall clock, without an event. */
  slotsExtrapolated = 0;
  /** Epochs added to the schedule. */
  epochsSet = 0;
  /** Epochs rejected because their size or number is invalid. */
  epochsRejected = 0;
  /** Slot indexes outside their epoch; ignored. */
  scheduleIndexesInvalid = 0;
  /** Times the table of contacts was replaced. */
  contactsSet = 0;
  /** Contacts with an invalid address; ignored. */
  contactsInvalid = 0;
  /** Contacts beyond the table's limit; ignored. */
  contactsOverflow = 0;
  /** Times a list of delinquent leaders was ignored because it names most of the cluster. */
  delinquentIgnored = 0;
  /** Times a plan was computed. */
  plansMade = 0;
  /** Plans that differed from the previous one and were published. */
  plansPublished = 0;
}
