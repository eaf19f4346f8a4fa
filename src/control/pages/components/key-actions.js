/**
 * The actions on keys, each a dialog. All of them return null when cancelled.
 */

import { patch, post } from "../lib/api.js";
import { secret } from "../lib/copy.js";
import { el } from "../lib/dom.js";
import { actClicked, filledBefore } from "../lib/resume.js";
import { ask, tell } from "./dialog.js";
import {
  CODE_INPUT,
  expiryField,
  expiryOf,
  linesField,
  linesOf,
  numberOf,
  selectField,
  textField,
  textOf,
} from "./fields.js";

export async function makeKey() {
  const made = await ask({
    title: "Make a key",
    content: [nameField(""), ...restrictions({})],
    button: "Make the key",
    act: (form) => post("/api/v1/keys", { label: textOf(form, "label"), ...restrictionsOf(form) }),
  });
  if (made !== null) await showToken("The new key", made);
  return made;
}

/**
 * Two dialogs: the public key, and the signature of the text that is shown for it. A login that
 * interrupted the second one leads back to it.
 */
export async function addPublicKey() {
  const { challenge: kept } = filledBefore();
  const resume = actClicked();
  const challenge = kept === undefined ? await askChallenge() : JSON.parse(kept);
  return challenge === null ? null : askSignature(challenge, resume);
}

async function askChallenge() {
  const asked = await ask({
    title: "Add a public key",
    content: [
      el("p", {}, "Programs that send over QUIC prove with it who they are. You sign a text once."),
      textField(
        "Public key",
        { ...CODE_INPUT, name: "public_key", maxlength: 64 },
        "The Solana address of the program's keypair, as solana address prints it.",
      ),
    ],
    button: "Continue",
    act: (form) =>
      post("/api/v1/public-keys/challenges", { public_key: textOf(form, "public_key") }),
  });
  return asked === null ? null : asked.challenge;
}

/** @param {any} challenge as the API tells it @param {string | null} resume */
function askSignature(challenge, resume) {
  const { id, text, command } = challenge;
  const value = JSON.stringify(challenge);
  return ask({
    title: "Sign with the key",
    resume,
    content: [
      el("input", { type: "hidden", name: "challenge", value }),
      el("p", {}, "Sign this text within 15 minutes, with a wallet or on the command line:"),
      secret(text, "Copy the command", {
        copied: command,
        attributes: { "data-testid": "challenge" },
      }),
      textField(
        "Signature",
        { ...CODE_INPUT, name: "signature", maxlength: 128 },
        "In base58, as solana sign-offchain-message prints it, or in base64.",
      ),
      nameField(""),
      ...restrictions({}),
    ],
    button: "Add the key",
    act: (form) =>
      post("/api/v1/public-keys", {
        challenge_id: id,
        signature: textOf(form, "signature"),
        label: textOf(form, "label"),
        ...restrictionsOf(form),
      }),
  });
}

/** @param {any} key */
export function changeKey(key) {
  return ask({
    title: `Change ${nameOf(key)}`,
    content: [nameField(key.label), ...restrictions(key)],
    button: "Save",
    act: (form) => {
      const fields = { label: textOf(form, "label"), ...restrictionsOf(form) };
      return patch(`/api/v1/keys/${key.id}`, changesOf(key, fields));
    },
  });
}

/**
 * The fields that differ from the key as the dialog showed it: another browser may have changed
 * the others since.
 * @param {any} key @param {Record<string, unknown>} fields
 */
function changesOf(key, fields) {
  const isChanged = (/** @type {[string, unknown]} */ [name, value]) =>
    JSON.stringify(value) !== JSON.stringify(key[name]);
  return Object.fromEntries(Object.entries(fields).filter(isChanged));
}

const OVERLAPS = /** @type {const} */ ([
  ["0", "Ends immediately"],
  ["3600", "An hour"],
  ["86400", "A day"],
  ["604800", "A week"],
  ["2592000", "30 days"],
]);

/** @param {any} key */
export async function rotateKey(key) {
  const text =
    "A new key takes its place, with the same label and limits. The old one works for a while, " +
    "so that your programs can be changed without a gap.";
  const made = await ask({
    title: `Rotate ${nameOf(key)}`,
    content: [
      el("p", {}, text),
      selectField("The old key works on for", "overlap_seconds", OVERLAPS, "86400"),
    ],
    button: "Rotate",
    act: (form) =>
      post(`/api/v1/keys/${key.id}/rotate`, {
        overlap_seconds: Number(textOf(form, "overlap_seconds")),
      }),
  });
  if (made !== null) await showToken("The new key", made);
  return made;
}

/** @param {any} key */
export function revokeKey(key) {
  return ask({
    title: `Revoke ${nameOf(key)}?`,
    content: [
      el(
        "p",
        {},
        "Every region refuses ",
        el("code", {}, key.hint),
        " within a second. This cannot be taken back.",
      ),
    ],
    button: "Revoke the key",
    danger: true,
    act: () => post(`/api/v1/keys/${key.id}/revoke`),
  });
}

export function linkKey() {
  const text =
    "A key that works but belongs to no login can be moved to this account, with its use from now " +
    "on. The proof is the key itself.";
  const key = textField("The key", { ...CODE_INPUT, name: "token", maxlength: 256 });
  const label = textField("Label", { name: "label", maxlength: 64 }, "Empty: the one it has.");
  return ask({
    title: "Link a key",
    content: [el("p", {}, text), key, label],
    button: "Link the key",
    act: (form) => {
      const named = textOf(form, "label");
      const token = textOf(form, "token");
      return post("/api/v1/keys/link", named === "" ? { token } : { token, label: named });
    },
  });
}

/** @param {string} title @param {{key: any, token: string}} made */
function showToken(title, { key, token }) {
  return tell({
    title,
    content: [
      el("p", {}, `${nameOf(key)} works in every region within a second.`),
      secret(token, "Copy the key", { attributes: { "data-testid": "new-key" } }),
    ],
  });
}

/** What a sentence calls a key: an operator may make one without a label. @param {any} key */
export function nameOf({ label, hint }) {
  return label || hint;
}

/** @param {string} value */
function nameField(value) {
  const attributes = { name: "label", value, required: true, maxlength: 64, autocomplete: "off" };
  return textField("Label", attributes, "What it is for: a program, a machine, a customer.");
}

/** @param {any} key an existing one, or nothing */
function restrictions(key) {
  const number = { type: "number", min: 1, step: 1, placeholder: "the plan's" };
  const addresses = (key.allowed_addresses ?? []).join("\n");
  return [
    expiryField(key.expires_at ?? null),
    linesField(
      "Only from these addresses",
      "allowed_addresses",
      addresses,
      "Networks such as 203.0.113.0/24, one a line. Empty: from anywhere.",
    ),
    el(
      "div",
      { class: "pair" },
      textField("Requests a second", {
        ...number,
        name: "rate_per_second",
        value: key.rate_per_second ?? "",
      }),
      textField("Burst", { ...number, name: "burst", value: key.burst ?? "" }),
    ),
  ];
}

/** @param {HTMLFormElement} form */
function restrictionsOf(form) {
  const expires = expiryOf(form);
  return {
    ...(expires === undefined ? {} : { expires_at: expires }),
    allowed_addresses: linesOf(form, "allowed_addresses"),
    rate_per_second: numberOf(form, "rate_per_second"),
    burst: numberOf(form, "burst"),
  };
}
