/** When certificates are ordered. Pure. */
import type { CertificateState } from '#store/naming/certificates.ts'
import { certificateLimits } from './limits.ts'

/** Whether to order a certificate now: there is none, its time has come, or another issuer made it. */
export function isDue(known: CertificateState | undefined, issuerId: string, now: number): boolean {
  if (known === undefined || known.due_at <= now) return true
  return known.failures === 0 && known.issuer !== issuerId
}

/** Returns when to renew a certificate (epoch ms). `random` is in [0, 1): many certificates that began together are not renewed together. */
export function renewalTime(notBefore: number, notAfter: number, random: number): number {
  const { renewalPart, renewalSpread } = certificateLimits
  return Math.floor(notBefore + (notAfter - notBefore) * (renewalPart + renewalSpread * random))
}

/** Returns the pause after a failed order, between half the step and the whole step, which doubles with each failure. */
export function retryDelayMs(failures: number, isRejected: boolean, random: number): number {
  const { rejectedDelayMsMin, rejectedDelayMsMax, failedDelayMsMin, failedDelayMsMax } = certificateLimits
  const [min, max] = isRejected ? [rejectedDelayMsMin, rejectedDelayMsMax] : [failedDelayMsMin, failedDelayMsMax]
  const step = Math.min(max, min * 2 ** Math.min(failures, 30))
  return Math.floor(step / 2 + (random * step) / 2)
}
