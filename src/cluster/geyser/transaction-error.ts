/**
 * Converts a transaction error from the encoding used between validators to the JSON of their RPC.
 *
 * The encoding is bincode: the index of the enum variant as 32 bits, then its fields. The names are
 * in the order of the crates solana-transaction-error and solana-instruction-error 3.x (checked
 * 2026-11); variants are only ever appended. An unknown variant is shown by its index.
 */

export const TRANSACTION_ERRORS: readonly string[] = [
  "AccountInUse",
  "AccountLoadedTwice",
  "AccountNotFound",
  "ProgramAccountNotFound",
  "InsufficientFundsForFee",
  "InvalidAccountForFee",
  "AlreadyProcessed",
  "BlockhashNotFound",
  "InstructionError",
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
  "DuplicateInstruction",
  "InsufficientFundsForRent",
  "MaxLoadedAccountsDataSizeExceeded",
  "InvalidLoadedAccountsDataSizeLimit",
  "ResanitizationNeeded",
  "ProgramExecutionTemporarilyRestricted",
  "UnbalancedTransaction",
  "ProgramCacheHitMaxLimit",
  "CommitCancelled",
];

export const INSTRUCTION_ERRORS: readonly string[] = [
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
  "Custom",
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
  "BorshIoError",
  "AccountNotRentExempt",
  "InvalidAccountOwner",
  "ArithmeticOverflow",
  "UnsupportedSysvar",
  "IllegalOwner",
  "MaxAccountsDataAllocationsExceeded",
  "MaxAccountsExceeded",
  "MaxInstructionTraceLengthExceeded",
  "BuiltinProgramsMustConsumeComputeUnits",
];

/** The error as JSON text, as in `getSignatureStatuses`. Never throws. */
export function transactionErrorText(encoded: Uint8Array): string {
  const place = wordAt(encoded, 0);
  const name = place === null ? undefined : TRANSACTION_ERRORS[place];
  if (name === undefined) return unknown(place);
  const byte = encoded[4] ?? 0;
  switch (name) {
    case "InstructionError":
      return JSON.stringify({ [name]: [byte, instructionError(encoded.subarray(5))] });
    case "DuplicateInstruction":
      return JSON.stringify({ [name]: byte });
    case "InsufficientFundsForRent":
    case "ProgramExecutionTemporarilyRestricted":
      return JSON.stringify({ [name]: { account_index: byte } });
    default:
      return JSON.stringify(name);
  }
}

function instructionError(encoded: Uint8Array): unknown {
  const place = wordAt(encoded, 0);
  const name = place === null ? undefined : INSTRUCTION_ERRORS[place];
  if (name === "Custom") return { Custom: wordAt(encoded, 4) ?? 0 };
  return name ?? JSON.parse(unknown(place));
}

/** Valid JSON too, so that readers need no special case. */
function unknown(place: number | null): string {
  return JSON.stringify(place === null ? "Unknown" : `Unknown(${place})`);
}

/** 32 bits, little-endian; null if fewer bytes are left. */
function wordAt(encoded: Uint8Array, at: number): number | null {
  if (encoded.length < at + 4) return null;
  return new DataView(encoded.buffer, encoded.byteOffset).getUint32(at, true);
}
