import { describe, expect, it } from "vitest";
import { environmentName, KEY_PATHS, KEYS } from "../../src/config/table.ts";

describe("configuration key table", () => {
  it.each(KEY_PATHS)("%s: accepts its default", (path) => {
    const { kind, fallback, neededBy } = KEYS[path];
    if (fallback === null) return;
    expect(neededBy).toBeNull();
    expect(kind.read(fallback, "/").kind).toBe("ok");
  });

  it.each(KEY_PATHS)("%s: shows its default unchanged", (path) => {
    const key = KEYS[path];
    if (key.fallback === null) return;
    const reading = key.kind.read(key.fallback, "/");
    // Each kind shows the values that it read; the union of all kinds cannot express that.
    const show = key.kind.show as (value: unknown) => unknown;
    // A path is shown resolved against the folder of the configuration.
    const shown = key.kind.name === "path" ? `/${key.fallback}` : key.fallback;
    expect(reading.kind === "ok" && show(reading.value)).toEqual(shown);
  });

  it.each(KEY_PATHS)("%s: is a section, a table in it if any, and a key in lower case", (path) => {
    expect(path).toMatch(/^[a-z]+(\.[a-z]+)?(\.[a-z_]+)?$|^[a-z]+\.[a-z_]+$/);
  });

  it.each(KEY_PATHS)("%s: has a one-sentence description without a full stop", (path) => {
    expect(KEYS[path].description).toMatch(/^[A-Z].*[^.]$/);
  });

  it("maps each key to a distinct environment variable", () => {
    expect(new Set(KEY_PATHS.map(environmentName)).size).toBe(KEY_PATHS.length);
  });
});
