/** What a stage may log. `telemetry/log.ts` implements it; keys are never logged. */
export interface Log {
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}
