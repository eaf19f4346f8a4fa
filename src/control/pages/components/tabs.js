/**
 * Tabs by the ARIA pattern: arrows, Home and End move between them, and only the selected one is in
 * the tab order.
 */

import { el, fill, freshId } from "../lib/dom.js";

/**
 * @param {string} label of the list of tabs
 * @param {readonly {name: string, title: string}[]} tabs
 * @param {(name: string) => import("../lib/dom.js").Child[]} content asked for whenever it is shown
 * @returns {HTMLElement}
 */
export function tabs(label, tabs, content) {
  const panelId = freshId("panel");
  let chosen = tabs[0]?.name ?? "";
  const panel = el("div", { class: "panel", role: "tabpanel", id: panelId });
  const buttons = tabs.map(({ name, title }) =>
    el(
      "button",
      {
        type: "button",
        class: "tab",
        role: "tab",
        id: `${panelId}-${name}`,
        "aria-controls": panelId,
        onclick: () => choose(name),
      },
      title,
    ),
  );
  const list = el("div", { class: "tabs", role: "tablist", "aria-label": label }, buttons);

  /** @param {string} name */
  function choose(name) {
    chosen = name;
    for (const button of buttons) {
      const selected = button.id === `${panelId}-${name}`;
      button.setAttribute("aria-selected", String(selected));
      button.tabIndex = selected ? 0 : -1;
    }
    panel.setAttribute("aria-labelledby", `${panelId}-${name}`);
    fill(panel, content(chosen));
  }

  list.addEventListener("keydown", (/** @type {KeyboardEvent} */ event) => {
    const index = tabs.findIndex(({ name }) => name === chosen);
    const last = tabs.length - 1;
    const next = {
      ArrowRight: index === last ? 0 : index + 1,
      ArrowLeft: index === 0 ? last : index - 1,
      Home: 0,
      End: last,
    }[event.key];
    const tab = next === undefined ? undefined : tabs[next];
    if (tab === undefined || next === undefined) return;
    event.preventDefault();
    choose(tab.name);
    buttons[next]?.focus();
  });
  choose(chosen);
  return el("div", {}, list, panel);
}
