/** What a stage may say to the log. `observe/log.ts` makes the real one; no key ever goes in. */
export interface Log {
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}
