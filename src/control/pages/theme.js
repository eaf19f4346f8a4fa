/**
 * Sets the colour scheme that was chosen on this device before anything is painted. It is the one
 * script that is no module, because modules run after the first paint. Nothing chosen: the system's.
 */

(() => {
  try {
    const chosen = localStorage.getItem("theme");
    if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
  } catch {
    // A browser that keeps nothing for us shows the system's scheme.
  }
})();
