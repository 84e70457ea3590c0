import { MiB } from '#lib/bytes.ts'

/** Files of a set-up come from pull requests too. */
export const setupLimits = {
  filesMax: 10_000,
  depthMax: 16,
  fileBytesMax: 4 * MiB,
  totalBytesMax: 64 * MiB,
  problemsMax: 100,
  yaml: { tokensMax: 2_000_000, indentMax: 256, nestingMax: 16, aliasesMax: 200 },
  /** Calls at once. */
  parallel: 4,
  /** Previews at once: the API allows an account so many, and the console needs one. */
  previewsParallel: 3,
  callTimeoutMs: 120_000,
  /** How long a deletion waits for endpoints that still deliver. */
  drainWaitMs: 60_000,
  drainPollMs: 500,
  /** Lines of a definition that are compared one by one. */
  diffLinesMax: 4_000,
} as const
