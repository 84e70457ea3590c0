/** Bounds of the log's own work. Those that an operator or a customer moves are handed in (WalOptions, LogSettings). */
export const walLimits = {
  /** One group commit: what one writev and one fdatasync make durable. A single larger frame goes alone. */
  groupBytesMax: 8 * 1024 * 1024,
  groupFramesMax: 4_096,
  /** Frames that wait for the disk, over all logs. Beyond it an append is answered `overloaded`. */
  waitingBytesMax: 256 * 1024 * 1024,
  /** Payload chunks up to this size are copied beside their header: cheaper than one more entry of the writev (measured). */
  copiedPayloadBytesMax: 4 * 1024,
  /** How often files that delivery deleted are looked for, and what failed is tried again. */
  lookIntervalMs: 1_000,
  /** Logs that are recovered at the same time. */
  recoveryParallel: 4,
  /** Buffer of a recovery scan; a larger frame gets a buffer of its own. */
  scanBufferBytes: 4 * 1024 * 1024,
  /** Bytes that a recovery reads to try what looks like a frame behind damage; a hostile payload can be full of such places. */
  searchBytesMax: 2 * 1024 * 1024 * 1024,
  /** What a disk that failed must take durably before it is believed again. */
  probeBytes: 64 * 1024,
} as const

export type WalLimits = { readonly [Name in keyof typeof walLimits]: number }
