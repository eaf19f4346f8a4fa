/**
 * The numbers by which TypeScript and Rust name the same things: kinds, causes, reasons, states and
 * the order of counters. Reads the Rust source, so that a change of one side alone fails here.
 */

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { DELIVERY_REASONS } from "../../src/core/errors.ts";
import {
  CLOSE_CAUSE,
  CONTRACT_VERSION,
  DECODER_COUNTERS,
  ENGINE_COUNTERS,
  EVENT_KIND,
  EVENT_NUMBERS,
  INGRESS_THREAD_COMMANDS,
  INGRESS_THREAD_STATES,
  PEER_STATS,
  SIGNATURE_TEXT_MAX,
  START_FULL,
  START_IDENTITY,
  START_OPTIONS,
  START_SOCKET,
  START_THREAD,
  STREAM_STOPPED,
  SUBMIT_NUMBERS,
  VALIDATION_NUMBERS,
} from "../../src/native/contract.ts";
import { ROOT } from "../support/source-tree.ts";

/** A Rust file without its comments. */
function rust(path: string): string {
  const text = readFileSync(join(ROOT, "native/src", path), "utf8");
  return text.replace(/\/\/[^\n]*/g, "");
}

/** The first group of the only match. */
function only(text: string, form: RegExp): string {
  const found = [...text.matchAll(new RegExp(form, "g"))];
  expect(found, `${form}`).toHaveLength(1);
  return found[0]?.[1] ?? "";
}

const lowerFirst = (name: string): string => name.charAt(0).toLowerCase() + name.slice(1);
const camel = (name: string): string => name.replace(/_(\w)/g, (_, letter) => letter.toUpperCase());
const snake = (name: string): string =>
  lowerFirst(name).replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);

/** Name and number of each variant; one without a number follows the one before it. */
function variants(text: string, name: string): [string, number][] {
  const body = only(text, new RegExp(`pub enum ${name} \\{([^}]*)\\n\\}`));
  let next = 0;
  return [...body.matchAll(/^ {4}(\w+)(?: = (\d+))?,$/gm)].map(([, variant = "", number]) => {
    const value = number === undefined ? next : Number(number);
    next = value + 1;
    return [variant, value];
  });
}

/** The same by TypeScript's form of the names. */
const numbersOf = (text: string, name: string): Readonly<Record<string, number>> =>
  Object.fromEntries(variants(text, name).map(([variant, value]) => [lowerFirst(variant), value]));

/** The body of a method that returns an array. */
const arrayOf = (text: string, head: string): string =>
  only(
    text,
    new RegExp(`${head} \\{\\n(?:        (?!\\[)[^\\n]*\\n)*        \\[\\n([^\\]]*)\\n {8}\\]`),
  );

const event = rust("quic/event.rs");
const engine = rust("quic/engine.rs");

describe("Rust and contract.ts agree on", () => {
  it("the kinds of records", () => {
    expect(numbersOf(event, "Kind")).toEqual(EVENT_KIND);
  });

  it("the causes of a connection's end", () => {
    expect(numbersOf(event, "CloseCause")).toEqual(CLOSE_CAUSE);
  });

  it("the reasons of a delivery without a receipt", () => {
    const reasons = variants(event, "Reason").map(([name, value]) => [snake(name), value]);
    const expected = Object.keys(DELIVERY_REASONS).map((reason, index) => [reason, index + 1]);
    expect(reasons).toEqual([["none", 0], ...expected]);
    expect(Object.fromEntries(reasons)["stream_stopped"]).toBe(STREAM_STOPPED);
  });

  it("the order of an engine's counters", () => {
    const names = [
      ...only(engine, /pub const COUNTERS: [^=]*=\s*\[([^\]]*)\]/).matchAll(/"(\w+)"/g),
    ];
    expect(names.map(([, name = ""]) => camel(name))).toEqual(ENGINE_COUNTERS);
    const values = arrayOf(engine, "pub fn counters\\(&self\\) -> [^\\n]*").split(",\n");
    expect(values.map((value) => /(\w+)\.(?:load|len|lost|map)\(/.exec(value)?.[1])).toEqual([
      "peer_table",
      "events",
      "inbox_drops",
      "send_errors",
      "panics",
      "deliveries_queued",
      "deliveries_evicted",
    ]);
  });

  it("the order of a connection's stats", () => {
    const values = arrayOf(rust("quic/peer_core.rs"), "pub fn stats\\(&self\\) -> [^\\n]*");
    const names = [...values.matchAll(/(?:self|latest)\.(\w+)(?:\(\)|\.load\()/g)];
    expect(names.map(([, name = ""]) => camel(name))).toEqual(PEER_STATS);
  });

  it("the codes of an engine that does not start", () => {
    const codes = rust("node/status_codes.rs");
    const found = [...codes.matchAll(/const (START_\w+): i32 = (-\d+);/g)];
    expect(Object.fromEntries(found.map(([, name, code]) => [name, Number(code)]))).toEqual({
      START_FULL,
      START_OPTIONS,
      START_IDENTITY,
      START_THREAD,
      START_SOCKET,
    });
  });

  it("the commands and the states of an ingress thread", () => {
    const commands = rust("node/ingress.rs").matchAll(/(\d) => Command::(\w+),/g);
    const found = [...commands].map(([, number, name = ""]) => [lowerFirst(name), Number(number)]);
    expect(Object.fromEntries(found)).toEqual(INGRESS_THREAD_COMMANDS);
    expect(numbersOf(rust("submit/thread_status.rs"), "ThreadState")).toEqual(
      INGRESS_THREAD_STATES,
    );
  });

  it("the size of each array, and the contract's version", () => {
    const count = (path: string, form: RegExp) => Number(only(rust(path), form));
    expect({
      CONTRACT_VERSION: count("node/quic.rs", /fn contract_version\(\) -> u32 \{\s*(\d+)\s*\}/),
      EVENT_NUMBERS: count("sync/entry_ring.rs", /const UNIT_WORDS: usize = (\d+);/),
      VALIDATION_NUMBERS: count("decode/decoder.rs", /const VALIDATION_NUMBERS: usize = (\d+);/),
      DECODER_COUNTERS: count("decode/decoder.rs", /const COUNTERS: usize = (\d+);/),
      SUBMIT_NUMBERS: count("node/submit.rs", /const ANSWER_NUMBERS: usize = (\d+);/),
      SIGNATURE_TEXT_MAX: count("decode/base58.rs", /const SIGNATURE_TEXT_MAX: usize = (\d+);/),
    }).toEqual({
      CONTRACT_VERSION,
      EVENT_NUMBERS,
      VALIDATION_NUMBERS,
      DECODER_COUNTERS,
      SUBMIT_NUMBERS,
      SIGNATURE_TEXT_MAX,
    });
  });
});
