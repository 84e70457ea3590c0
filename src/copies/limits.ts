import { MiB } from '#lib/bytes.ts'

export const copyLimits = {
  /** An object is put at this size, before its window ends. */
  objectBytes: 4 * MiB,
  /** A window ends this long after a piece that found the copier idle. */
  quietWindowMs: 10,
  putsParallel: 4,
  /** Larger pieces are split, so that no object has more than twice `objectBytes`. One with more content than this is damaged. */
  contentBytesMax: 12 * MiB,
  /** More that waits for the store is refused. */
  waitingBytesMax: 64 * MiB,
  /** One put is given up after this, and repeated. */
  putMsMax: 30_000,
  /** Callers wait as long as this for an object. */
  answerMsMax: 10_000,
  retryMsMin: 100,
  retryMsMax: 2_000,
  /** Idempotency keys of what is delivered are put as often as this. */
  keysIntervalMs: 60_000,
  /** Keys put on their own that are remembered: such a one is not put again. */
  keysAloneMax: 10_000,
  /** How often it looks which segments are delivered. */
  upkeepIntervalMs: 5_000,
  /** Objects that are removed in one turn. */
  removedAtOnce: 1_000,
  /** States of a node that stay: a listing may be that old. */
  writerStatesKept: 100,
  /** Segments that control is asked about in one call. */
  lookedUpAtOnce: 100,
  /** Older pieces are put again with new ones, so that one segment that is not delivered keeps no other object. */
  carriedAfterMs: 3_600_000,
  carriedAtOnce: 100,
} as const
