import { describe, expect, it } from "vitest";
import { environmentName, KEY_PATHS, KEYS } from "../../src/config/table.ts";

describe("the table of keys", () => {
  it.each(KEY_PATHS)("%s: its default is a value that the key takes", (path) => {
    const { kind, fallback, neededBy } = KEYS[path];
    if (fallback === null) return;
    expect(neededBy).toBeNull();
    expect(kind.read(fallback, "/").kind).toBe("ok");
  });

  it.each(KEY_PATHS)("%s: its default is written back as it stands", (path) => {
    const key = KEYS[path];
    if (key.fallback === null) return;
    const reading = key.kind.read(key.fallback, "/");
    // Each kind shows the values that it read; the union of all kinds cannot express that.
    const show = key.kind.show as (value: unknown) => unknown;
    // A path is shown resolved against the folder of the configuration.
    const shown = key.kind.name === "path" ? `/${key.fallback}` : key.fallback;
    expect(reading.kind === "ok" && show(reading.value)).toEqual(shown);
  });

  it.each(KEY_PATHS)("%s: is section and key in small letters", (path) => {
    expect(path).toMatch(/^[a-z]+(\.[a-z_]+)?$/);
  });

  it.each(KEY_PATHS)("%s: has one sentence without a full stop", (path) => {
    expect(KEYS[path].description).toMatch(/^[A-Z].*[^.]$/);
  });

  it("maps no two keys to one environment variable", () => {
    expect(new Set(KEY_PATHS.map(environmentName)).size).toBe(KEY_PATHS.length);
  });
});
