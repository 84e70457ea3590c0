/** Tuning of the log. Bounds that an operator or a customer sets are passed in (LocalLogWriterOptions, LogSettings). */
import { KiB, MiB } from '#lib/bytes.ts'

export const logLimits = {
  /** Size of a group, which one writev and one fdatasync make durable. A larger frame is a group of its own. */
  groupBytesMax: 8 * MiB,
  groupFramesMax: 4_096,
  /** Frames waiting for the disk, over all logs. Beyond it an append is rejected as `overloaded`. */
  waitingBytesMax: 256 * MiB,
  /**
   * Logs that write and sync at the same time. Fewer than the threads of the process (UV_THREADPOOL_SIZE, 8): those that are left open and
   * rename files, decompress bodies and resolve names.
   */
  commitsParallel: 6,
  /** Payloads up to this size are copied when they are accepted: cheaper than one more entry of the writev, and than to keep them (measured). */
  copiedPayloadBytesMax: 4 * KiB,
  /** How often removed segments are noticed, and failed recoveries and removals retried. */
  upkeepIntervalMs: 1_000,
  /** Directories that are read at the same time at the start. */
  surveyParallel: 16,
  /** Logs that are recovered at the same time: before requests are accepted, and beside them. */
  recoveryParallel: 4,
  retryParallel: 2,
  /** How long a start waits for the recovery of segments. What is left is recovered while requests are accepted. */
  recoveryWaitMs: 1_000,
  /** Buffer of a recovery scan. A larger frame makes it larger. */
  scanBufferBytes: 4 * MiB,
  /** Bytes that must become durable on a failed disk before it counts as recovered. */
  probeBytes: 64 * KiB,
  /** How long the failed write of a single log is reported if nobody writes to it any more. */
  failureShownMs: 30_000,
  /** A log without an open segment for this long was idle: its next data is logged. */
  idleMs: 60_000,
} as const

export type LogLimits = { readonly [Name in keyof typeof logLimits]: number }
