/**
 * Tells what happened to those who do not see it: a sentence in the page's live region.
 */

import { after } from "./clock.js";

/** @param {string} message */
export function announce(message) {
  const region = document.querySelector("#say");
  if (region === null) return;
  region.textContent = "";
  // A change is read out only when the region was empty for a moment.
  after(50, () => {
    region.textContent = message;
  });
}
