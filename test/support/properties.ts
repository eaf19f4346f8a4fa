/**
 * Properties, from a seed that is the same in every run: whether a change is taken is not left to
 * chance. PROPERTY_SEED=random, or a number, tries others; what fails names its seed.
 */

import fc from "fast-check";

const wanted = process.env["PROPERTY_SEED"] ?? "1";
if (wanted !== "random") fc.configureGlobal({ seed: Number(wanted) });

export { fc };
