/**
 * Property-test settings, with the same seed in every run: whether a change passes must not be
 * random. PROPERTY_SEED=random, or a number, uses others; a failure reports its seed.
 */

import fc from "fast-check";

const wanted = process.env["PROPERTY_SEED"] ?? "1";
if (wanted !== "random") fc.configureGlobal({ seed: Number(wanted) });

export { fc };
