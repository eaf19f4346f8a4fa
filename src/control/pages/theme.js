/**
 * Sets the colour scheme chosen on this device before the first paint. It is the only script that
 * is not a module, because modules run after the first paint. Default: the system's scheme.
 */

(() => {
  try {
    const chosen = localStorage.getItem("theme");
    if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
  } catch {
    // Without storage the system's scheme applies.
  }
})();
