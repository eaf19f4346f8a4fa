/**
 * Creates elements. Text always becomes a text node and never markup, which keeps a user-chosen
 * label from becoming code: these pages have no other way to put data on screen.
 */

const SVG = "http://www.w3.org/2000/svg";

/** @typedef {Node | string | number | null | undefined | false} Child */
/** @typedef {string | number | boolean | null | undefined | ((event: any) => void)} Attribute */

/**
 * An element with attributes and children. `true` sets an attribute without a value, `null` and
 * `false` omit it; `onclick` and other handlers take a function.
 * @param {string} tag
 * @param {Record<string, Attribute>} [attributes]
 * @param {...(Child | Child[])} children
 * @returns {any} the element; its kind follows from the tag
 */
export function el(tag, attributes = {}, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

/**
 * The same for SVG.
 * @param {string} tag
 * @param {Record<string, Attribute>} [attributes]
 * @param {...(Child | Child[])} children
 * @returns {any}
 */
export function svg(tag, attributes = {}, ...children) {
  return filled(document.createElementNS(SVG, tag), attributes, children);
}

/**
 * @param {Element} element
 * @param {Record<string, Attribute>} attributes
 * @param {(Child | Child[])[]} children
 */
function filled(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...nodes(children.flat()));
  return element;
}

/**
 * Replaces the children of an element. If the focus was inside, it moves to the new element of the
 * same name, so that keyboard users keep their position.
 * @param {Element} element
 * @param {...(Child | Child[])} children
 */
export function fill(element, ...children) {
  const active = document.activeElement;
  const within = active !== element && element.contains(active) ? active : null;
  element.replaceChildren(...nodes(children.flat()));
  if (within === null || element.contains(within)) return;
  for (const each of element.querySelectorAll(within.tagName)) {
    if (each instanceof HTMLElement && nameOf(each) === nameOf(within)) {
      each.focus({ preventScroll: true });
      return;
    }
  }
}

/** The accessible name of a button or a link. @param {Element} element */
function nameOf(element) {
  return element.getAttribute("aria-label") ?? element.textContent.trim();
}

/** @param {Child[]} children */
function nodes(children) {
  return children
    .filter((child) => child !== null && child !== undefined && child !== false)
    .map((child) => (typeof child === "number" ? String(child) : child));
}

let lastId = 0;

/** An id that no other element of the page has. */
export function freshId(name = "id") {
  lastId += 1;
  return `${name}-${lastId}`;
}
