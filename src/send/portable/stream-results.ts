/**
 * What became of the streams of one connection, until somebody asks for the last time.
 *
 * Streams count up from 1 and pass through 2^32. Those that are not done lie close together, so
 * each has its place by its number in arrays that double when two would meet: a connection that
 * carries little costs little, and nothing of a stream is left to the garbage collector. At the
 * bound the older one is forgotten: it is further back than any copy that is still asked for.
 *
 * Hot path: every function here.
 */

import { IN_FLIGHT, type StreamResult } from "../transport.ts";

const PLACES_MIN = 16;
/** In a place: nobody. Streams count from 1. */
const NO_STREAM = 0;

export class StreamResults {
  readonly #placesMax: number;
  #streams = new Uint32Array(PLACES_MIN);
  #streamResults = new Uint8Array(PLACES_MIN);
  #sentsNs = new Float64Array(PLACES_MIN);
  #endsNs = new Float64Array(PLACES_MIN);

  /** The copies of a connection that are asked for are so many of its newest. */
  constructor(inFlightMax: number) {
    this.#placesMax = 2 ** Math.ceil(Math.log2(inFlightMax + 1));
  }

  /** A new stream, and what is known of it. */
  open(stream: number, streamResult: StreamResult): void {
    while (this.#isUsed(stream)) this.#grow();
    const place = this.#placeOf(stream);
    this.#streams[place] = stream;
    this.#streamResults[place] = streamResult;
    this.#sentsNs[place] = 0;
    this.#endsNs[place] = 0;
  }

  /** -1 for a stream that is not here. */
  of(stream: number): StreamResult {
    const place = this.#placeOf(stream);
    return this.#streams[place] === stream ? (this.#streamResults[place] ?? -1) : -1;
  }

  /** When it went on the wire, as far as `settle` told; 0 before. */
  sentNsOf(stream: number): number {
    const place = this.#placeOf(stream);
    return this.#streams[place] === stream ? (this.#sentsNs[place] ?? 0) : 0;
  }

  /** When it came to its end, as far as `settle` told; 0 before. */
  endNsOf(stream: number): number {
    const place = this.#placeOf(stream);
    return this.#streams[place] === stream ? (this.#endsNs[place] ?? 0) : 0;
  }

  /** News of a stream that is here, and when that came about. */
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
      // Those that did not meet in the smaller arrays do not meet in the larger ones.
      const place = this.#placeOf(stream);
      this.#streams[place] = stream;
      this.#streamResults[place] = streamResults[from] ?? 0;
      this.#sentsNs[place] = sentsNs[from] ?? 0;
      this.#endsNs[place] = endsNs[from] ?? 0;
    }
  }
}
