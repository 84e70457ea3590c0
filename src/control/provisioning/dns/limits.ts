import { KiB } from '#lib/bytes.ts'

/** Tuning of the DNS providers. */
export const rfc2136Limits = {
  /** A message over TCP has at most 64 KiB. */
  messageBytesMax: 32 * KiB,
  exchangeTimeoutMs: 5_000,
  applyTimeoutMs: 15_000,
  /** Pause between two messages. */
  intervalMs: 50,
  /** Secondary servers fetch the zone once the primary has notified them. */
  settleSeconds: 5,
} as const

export const route53Limits = {
  /** AWS: values in one request, where an upsert counts twice, and characters in them. */
  valuesMax: 1_000,
  charactersMax: 32_000,
  /** AWS allows five requests a second for each account. */
  intervalMs: 250,
  applyTimeoutMs: 60_000,
  requestTimeoutMs: 10_000,
  /** AWS: changes generally reach all servers within a minute. */
  settleSeconds: 60,
} as const
