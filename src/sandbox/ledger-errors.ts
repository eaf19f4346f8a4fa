/**
 * Translates the virtual machine's errors into those of the network's RPC.
 *
 * litesvm reports an error without fields as its index in an enumeration of its own, whose order is
 * not that of src/cluster/geyser/transaction-error.ts; the names here are in litesvm's order. A
 * transaction with an error either lands, is charged and has an `err` in its status, or stays out
 * of every block; leaders never report which.
 */

/** `TransactionErrorFieldless` of litesvm, in its order; checked 2026-11. */
const TRANSACTION_ERRORS = [
  "AccountInUse",
  "AccountLoadedTwice",
  "AccountNotFound",
  "ProgramAccountNotFound",
  "InsufficientFundsForFee",
  "InvalidAccountForFee",
  "AlreadyProcessed",
  "BlockhashNotFound",
  "CallChainTooDeep",
  "MissingSignatureForFee",
  "InvalidAccountIndex",
  "SignatureFailure",
  "InvalidProgramForExecution",
  "SanitizeFailure",
  "ClusterMaintenance",
  "AccountBorrowOutstanding",
  "WouldExceedMaxBlockCostLimit",
  "UnsupportedVersion",
  "InvalidWritableAccount",
  "WouldExceedMaxAccountCostLimit",
  "WouldExceedAccountDataBlockLimit",
  "TooManyAccountLocks",
  "AddressLookupTableNotFound",
  "InvalidAddressLookupTableOwner",
  "InvalidAddressLookupTableData",
  "InvalidAddressLookupTableIndex",
  "InvalidRentPayingAccount",
  "WouldExceedMaxVoteCostLimit",
  "WouldExceedAccountDataTotalLimit",
  "MaxLoadedAccountsDataSizeExceeded",
  "ResanitizationNeeded",
  "InvalidLoadedAccountsDataSizeLimit",
  "UnbalancedTransaction",
  "ProgramCacheHitMaxLimit",
  "CommitCancelled",
] as const;

/** `InstructionErrorFieldless` of litesvm, in its order; checked 2026-11. */
const INSTRUCTION_ERRORS = [
  "GenericError",
  "InvalidArgument",
  "InvalidInstructionData",
  "InvalidAccountData",
  "AccountDataTooSmall",
  "InsufficientFunds",
  "IncorrectProgramId",
  "MissingRequiredSignature",
  "AccountAlreadyInitialized",
  "UninitializedAccount",
  "UnbalancedInstruction",
  "ModifiedProgramId",
  "ExternalAccountLamportSpend",
  "ExternalAccountDataModified",
  "ReadonlyLamportChange",
  "ReadonlyDataModified",
  "DuplicateAccountIndex",
  "ExecutableModified",
  "RentEpochModified",
  "NotEnoughAccountKeys",
  "AccountDataSizeChanged",
  "AccountNotExecutable",
  "AccountBorrowFailed",
  "AccountBorrowOutstanding",
  "DuplicateAccountOutOfSync",
  "InvalidError",
  "ExecutableDataModified",
  "ExecutableLamportChange",
  "ExecutableAccountNotRentExempt",
  "UnsupportedProgramId",
  "CallDepth",
  "MissingAccount",
  "ReentrancyNotAllowed",
  "MaxSeedLengthExceeded",
  "InvalidSeeds",
  "InvalidRealloc",
  "ComputationalBudgetExceeded",
  "PrivilegeEscalation",
  "ProgramEnvironmentSetupFailure",
  "ProgramFailedToComplete",
  "ProgramFailedToCompile",
  "Immutable",
  "IncorrectAuthority",
  "AccountNotRentExempt",
  "InvalidAccountOwner",
  "ArithmeticOverflow",
  "UnsupportedSysvar",
  "IllegalOwner",
  "MaxAccountsDataAllocationsExceeded",
  "MaxAccountsExceeded",
  "MaxInstructionTraceLengthExceeded",
  "BuiltinProgramsMustConsumeComputeUnits",
  "BorshIoError",
] as const;

/** Errors without fields whose transaction lands and pays its fee (SIMD-0082, 2026-11). */
const FEE_ONLY: ReadonlySet<string> = new Set([
  "ProgramAccountNotFound",
  "InvalidProgramForExecution",
  "MaxLoadedAccountsDataSizeExceeded",
]);

/** `err` as JSON-RPC shows it: a name, or one name with its fields. */
export type RpcError = string | Readonly<Record<string, unknown>>;

export interface LedgerError {
  readonly err: RpcError;
  /** Whether the transaction lands with this error. */
  readonly lands: boolean;
}

/** The virtual machine's error: an index, or an object whose fields indicate the kind. */
type RawError =
  | number
  | { readonly index: number; err(): number | object }
  | { readonly index: number }
  | { readonly accountIndex: number };

/** A virtual machine error in the RPC's form. */
export function ledgerError(raw: RawError): LedgerError {
  if (typeof raw === "number") {
    const name = TRANSACTION_ERRORS[raw] ?? "SanitizeFailure";
    return { err: name, lands: FEE_ONLY.has(name) };
  }
  if ("err" in raw) {
    return { err: { InstructionError: [raw.index, instructionError(raw.err())] }, lands: true };
  }
  if ("accountIndex" in raw) {
    const fields = { account_index: raw.accountIndex };
    return { err: { InsufficientFundsForRent: fields }, lands: true };
  }
  return { err: { DuplicateInstruction: raw.index }, lands: false };
}

function instructionError(raw: number | object): RpcError {
  if (typeof raw === "number") return INSTRUCTION_ERRORS[raw] ?? "GenericError";
  if ("code" in raw) return { Custom: raw.code };
  return "BorshIoError";
}
