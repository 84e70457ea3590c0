import { dayMs } from '#lib/time-units.ts'

/** Tuning of the issue of certificates. */
export const certificateLimits = {
  /** How often the leader looks for certificates that are due. */
  checkMs: 1_000,
  /** Time for one order. */
  orderTimeoutMs: 300_000,
  /** Part of its life after which a certificate is renewed, and the part over which renewals are spread. */
  renewalPart: 2 / 3,
  renewalSpread: 1 / 20,
  /** Pause after an order that the issuer refused: Let's Encrypt allows five failed validations of a name in an hour. */
  rejectedDelayMsMin: 120_000,
  rejectedDelayMsMax: 3_600_000,
  /** Pause after an order that failed for another reason, such as an issuer or a name server that cannot be reached. */
  failedDelayMsMin: 5_000,
  failedDelayMsMax: 600_000,
} as const

export const acmeLimits = {
  requestTimeoutMs: 30_000,
  /** How often the ACME server is asked whether it has validated a challenge, with growing pauses. */
  pollAttempts: 15,
  pollMsMin: 500,
  pollMsMax: 5_000,
  /** Time to remove the challenge, also while control stops. */
  removalTimeoutMs: 5_000,
  /** Seconds for which resolvers may keep the challenge. */
  challengeTtlSeconds: 60,
} as const

export const developmentCaLimits = {
  rootLifeMs: 10 * 365 * dayMs,
  certificateLifeMs: 90 * dayMs,
  /** Clocks of clients may be behind. */
  backdatedMs: 300_000,
} as const
