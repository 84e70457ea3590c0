import { describe, expect, test } from 'vitest'
import type { CertificateState } from '#store/naming/certificates.ts'
import { isDue, renewalTime, retryDelayMs } from './schedule.ts'

const day = 86_400_000
const now = Date.parse('2026-11-20T08:00:00.000Z')

const known = (change: Partial<CertificateState> = {}): CertificateState => ({
  name: '*.fra.example.com',
  issuer: 'ca',
  fingerprint: 'f',
  not_before: null,
  not_after: null,
  due_at: now + day,
  failures: 0,
  last_error: null,
  ...change,
})

describe('a certificate is ordered', () => {
  test.each([
    ['if there is none', undefined, true],
    ['not before its time', known(), false],
    ['at its time', known({ due_at: now }), true],
    ['if another issuer made it', known({ issuer: 'another' }), true],
    ['not during the pause after an order of the new issuer failed', known({ issuer: 'another', failures: 1 }), false],
    ['not during the pause after the first order failed', known({ issuer: null, failures: 1 }), false],
  ])('%s', (_, certificate, due) => {
    expect(isDue(certificate, 'ca', now)).toBe(due)
  })
})

test('a renewal begins after two thirds of the life, within a twentieth of it', () => {
  expect(renewalTime(now, now + 90 * day, 0)).toBe(now + 60 * day)
  const latest = renewalTime(now, now + 90 * day, 0.999)
  expect(latest).toBeGreaterThan(now + 64 * day)
  expect(latest).toBeLessThan(now + 65 * day)
})

describe('the pause after a failed order', () => {
  test('doubles up to a bound, between half the step and the whole step', () => {
    expect([0, 1, 2, 30].map((failures) => retryDelayMs(failures, false, 0.999_999))).toEqual([4_999, 9_999, 19_999, 599_999])
    expect(retryDelayMs(0, false, 0)).toBe(2_500)
  })

  test('is long if the issuer refused the order: at most five in an hour', () => {
    const pauses = [0, 1, 2, 3, 4].map((failures) => retryDelayMs(failures, true, 0))
    expect(pauses).toEqual([60_000, 120_000, 240_000, 480_000, 960_000])
    expect(pauses.reduce((sum, pause) => sum + pause)).toBeGreaterThan(1_800_000)
    expect(retryDelayMs(40, true, 0.999_999)).toBeLessThanOrEqual(3_600_000)
  })
})
