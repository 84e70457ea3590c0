import { KiB } from '#lib/bytes.ts'

/** Tuning of what is published in DNS. */
export const dnsLimits = {
  /** How often the leader compares what is published with the nodes that serve. */
  passMs: 1_000,
  /** How often it does so even if neither nodes nor endpoints changed. */
  fullPassMs: 30_000,
  /** After a longer gap between two passes, another process may have led. */
  passGapMsMax: 5_000,
  /** Longest pause while the DNS service cannot be reached. */
  outageDelayMsMax: 15_000,
  /** Changes in one call of the provider. */
  batchChangesMax: 100,
  /** Calls before the wanted records are computed again. */
  passBatchesMax: 10,
  /** Pause before a rejected change is repeated. */
  rejectedDelayMsMin: 2_000,
  rejectedDelayMsMax: 300_000,
  /** Pause before a record that the zone lost again is published again. */
  lostDelayMsMin: 10_000,
  lostDelayMsMax: 300_000,
  /** Addresses of one type at a name: more do not fit into a UDP response. */
  addressesMax: 32,
} as const

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
  /** How often a set that others change at the same time is read again. */
  textAttemptsMax: 5,
  /** AWS: changes generally reach all servers within a minute. */
  settleSeconds: 60,
} as const
