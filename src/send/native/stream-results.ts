/**
 * The results of the streams of one connection, until their last query.
 *
 * Stream numbers count up from 1 and wrap at 2^32. Unfinished streams lie close together, so each
 * has its entry by its number in arrays that double when two collide: an idle connection costs
 * little, and no garbage is created. At the bound the older stream is dropped: it is older than any
 * delivery that is still queried.
 *
 * Hot path: every function here.
 */

import { IN_FLIGHT, type StreamResult } from "../transport.ts";

const PLACES_MIN = 16;
/** Marks an empty entry. Streams count from 1. */
const NO_STREAM = 0;

export class StreamResults {
  readonly #placesMax: number;
  #streams = new Uint32Array(PLACES_MIN);
  #streamResults = new Uint8Array(PLACES_MIN);
  #sentsNs = new Float64Array(PLACES_MIN);
  #endsNs = new Float64Array(PLACES_MIN);

  /** Only the newest `inFlightMax` deliveries of a connection are queried. */
  constructor(inFlightMax: number) {
    this.#placesMax = 2 ** Math.ceil(Math.log2(inFlightMax + 1));
  }

  /** Adds a new stream with its result. */
  open(stream: number, streamResult: StreamResult): void {
    while (this.#isUsed(stream)) this.#grow();
    const place = this.#placeOf(stream);
    this.#streams[place] = stream;
    this.#streamResults[place] = streamResult;
    this.#sentsNs[place] = 0;
    this.#endsNs[place] = 0;
  }

  /** -1 for an unknown stream. */
  of(stream: number): StreamResult {
    const place = this.#placeOf(stream);
    return this.#streams[place] === stream ? (this.#streamResults[place] ?? -1) : -1;
  }

  /** When it was put on the wire, if `record` was called for it; 0 before. */
  sentNsOf(stream: number): number {
    const place = this.#placeOf(stream);
    return this.#streams[place] === stream ? (this.#sentsNs[place] ?? 0) : 0;
  }

  /** When it finished, if `record` was called for it; 0 before. */
  endNsOf(stream: number): number {
    const place = this.#placeOf(stream);
    return this.#streams[place] === stream ? (this.#endsNs[place] ?? 0) : 0;
  }

  /** Records the result of a known stream, and when it occurred. */
  record(stream: number, streamResult: StreamResult, atNs: number): void {
    const place = this.#placeOf(stream);
    if (this.#streams[place] !== stream) return;
    this.#streamResults[place] = streamResult;
    (streamResult === IN_FLIGHT ? this.#sentsNs : this.#endsNs)[place] = atNs;
  }

  close(stream: number): void {
    const place = this.#placeOf(stream);
    if (this.#streams[place] === stream) this.#streams[place] = NO_STREAM;
  }

  #isUsed(stream: number): boolean {
    return (
      this.#streams.length < this.#placesMax && this.#streams[this.#placeOf(stream)] !== NO_STREAM
    );
  }

  #placeOf(stream: number): number {
    return stream & (this.#streams.length - 1);
  }

  #grow(): void {
    const [streams, streamResults] = [this.#streams, this.#streamResults];
    const [sentsNs, endsNs] = [this.#sentsNs, this.#endsNs];
    const places = 2 * streams.length;
    this.#streams = new Uint32Array(places);
    this.#streamResults = new Uint8Array(places);
    this.#sentsNs = new Float64Array(places);
    this.#endsNs = new Float64Array(places);
    for (let from = 0; from < streams.length; from += 1) {
      const stream = streams[from] ?? NO_STREAM;
      if (stream === NO_STREAM) continue;
      // Streams without a collision in the smaller arrays have none in the larger ones.
      const place = this.#placeOf(stream);
      this.#streams[place] = stream;
      this.#streamResults[place] = streamResults[from] ?? 0;
      this.#sentsNs[place] = sentsNs[from] ?? 0;
      this.#endsNs[place] = endsNs[from] ?? 0;
    }
  }
}
