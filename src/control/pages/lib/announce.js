/**
 * Announces a message to screen readers, through the live region of the page.
 */

import { after } from "./clock.js";

/** @param {string} message */
export function announce(message) {
  const region = document.querySelector("#say");
  if (region === null) return;
  region.textContent = "";
  // Screen readers announce a change only if the region was empty before.
  after(50, () => {
    region.textContent = message;
  });
}
