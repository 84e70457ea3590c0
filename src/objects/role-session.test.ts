import { describe, expect, test } from 'vitest'
import { ManualClock } from '../../test/support/manual-clock.ts'
import { RoleSession } from './role-session.ts'
import { ObjectStoreError, type StoreErrorReason } from './store-error.ts'

const hour = 3_600_000
const minute = 60_000

/** Creates a session with an STS that numbers its credentials and fails on request. */
function newSession(purpose: 'request' | 'link', maxSeconds = 3_600) {
  const clock = new ManualClock()
  const requestedSeconds: number[] = []
  const sts = {
    requestedSeconds,
    failsWith: undefined as StoreErrorReason | undefined,
    lifetimeMs: undefined as number | undefined,
  }
  const session = new RoleSession({
    purpose,
    clock,
    async assume(seconds) {
      requestedSeconds.push(seconds)
      if (sts.failsWith !== undefined) throw new ObjectStoreError(sts.failsWith, 'assume_role', 'code', sts.failsWith)
      if (seconds > maxSeconds) throw new ObjectStoreError('refused', 'assume_role', 'ValidationError', 'too long')
      const lifetimeMs = sts.lifetimeMs ?? seconds * 1000
      return { accessKeyId: `id-${requestedSeconds.length}`, secretAccessKey: 's', sessionToken: 't', lifetimeMs }
    },
  })
  const get = async () => (await session.get()).accessKeyId
  return { clock, sts, session, get }
}

describe('credentials for requests', () => {
  test('are requested once for all callers, cached, and renewed five minutes before they expire', async () => {
    const { clock, sts, get } = newSession('request')
    expect(await Promise.all([get(), get(), get()])).toEqual(['id-1', 'id-1', 'id-1'])
    clock.advance(hour - 5 * minute - 1)
    expect(await get()).toBe('id-1')
    clock.advance(1)
    expect(await Promise.all([get(), get()])).toEqual(['id-2', 'id-2'])
    expect(sts.requestedSeconds).toEqual([3_600, 3_600])
  })

  test('with a lifetime of minutes are not requested again for every request', async () => {
    const { clock, sts, get } = newSession('request')
    sts.lifetimeMs = 4 * minute
    expect([await get(), await get()]).toEqual(['id-1', 'id-1'])
    clock.advance(3 * minute)
    expect(await get()).toBe('id-2')
  })

  test('already expired by the clock of STS are requested once a second, not for every request', async () => {
    const { clock, sts, get } = newSession('request')
    sts.lifetimeMs = -minute
    expect([await get(), await get()]).toEqual(['id-1', 'id-1'])
    clock.advance(1_000)
    expect(await get()).toBe('id-2')
  })

  test.each(['unreachable', 'throttled', 'unavailable'] as const)(
    'are used until they expire while STS is %s',
    async (reason) => {
      const { clock, sts, get } = newSession('request')
      await get()
      clock.advance(hour - minute)
      sts.failsWith = reason
      expect(await get()).toBe('id-1')
      clock.advance(minute)
      await expect(get()).rejects.toThrow(reason)
      sts.failsWith = undefined
      clock.advance(1_000)
      expect(await get()).toMatch(/^id-/)
    },
  )

  test('fail if their renewal is denied, although the old ones are still valid, until the role is back', async () => {
    const { clock, sts, get } = newSession('request')
    await get()
    clock.advance(hour - minute)
    sts.failsWith = 'assume_role_denied'
    await expect(get()).rejects.toMatchObject({ reason: 'assume_role_denied' })
    sts.failsWith = undefined
    clock.advance(1_000)
    expect(await get()).toBe('id-3')
  })

  test('are not requested again within a second of a failure', async () => {
    const { clock, sts, get } = newSession('request')
    sts.failsWith = 'assume_role_denied'
    for (let n = 0; n < 5; n += 1) await expect(get()).rejects.toMatchObject({ reason: 'assume_role_denied' })
    expect(sts.requestedSeconds).toHaveLength(1)
    clock.advance(1_000)
    await expect(get()).rejects.toMatchObject({ reason: 'assume_role_denied' })
    expect(sts.requestedSeconds).toHaveLength(2)
  })

  test('are discarded after an access error, unless they are new', async () => {
    const { clock, session, get } = newSession('request')
    await get()
    session.discardIfOld()
    expect(await get()).toBe('id-1')
    clock.advance(10_000)
    session.discardIfOld()
    expect(await get()).toBe('id-2')
  })

  test('are not awaited after the caller aborts', async () => {
    const never = Promise.withResolvers<never>()
    const session = new RoleSession({ purpose: 'request', clock: new ManualClock(), assume: () => never.promise })
    const abort = new AbortController()
    const waiting = session.get(abort.signal)
    abort.abort(new Error('enough'))
    await expect(waiting).rejects.toThrow('enough')
    await expect(session.get(AbortSignal.abort(new Error('at once')))).rejects.toThrow('at once')
  })
})

describe('credentials for URLs that are valid for an hour', () => {
  test('last two hours, and are used while an hour is left', async () => {
    const { clock, sts, get } = newSession('link', 43_200)
    expect([await get(), await get()]).toEqual(['id-1', 'id-1'])
    clock.advance(hour)
    expect(await get()).toBe('id-1')
    clock.advance(1)
    expect(await get()).toBe('id-2')
    expect(sts.requestedSeconds).toEqual([7_200, 7_200])
  })

  test('last one hour if the role allows no more, and are used for half a minute', async () => {
    const { clock, sts, get } = newSession('link')
    expect([await get(), await get()]).toEqual(['id-2', 'id-2'])
    clock.advance(29_999)
    expect(await get()).toBe('id-2')
    clock.advance(1)
    expect(await get()).toBe('id-3')
    expect(sts.requestedSeconds).toEqual([7_200, 3_600, 3_600])
  })

  test('that are shorter than requested are used for half a minute', async () => {
    const { clock, sts, get } = newSession('link', 43_200)
    sts.lifetimeMs = 15 * minute
    expect([await get(), await get()]).toEqual(['id-1', 'id-1'])
    clock.advance(30_000)
    expect(await get()).toBe('id-2')
  })

  test('are not limited to an hour because STS was unreachable', async () => {
    const { clock, sts, get } = newSession('link', 43_200)
    sts.failsWith = 'unreachable'
    await expect(get()).rejects.toThrow('unreachable')
    sts.failsWith = undefined
    clock.advance(1_000)
    await get()
    expect(sts.requestedSeconds).toEqual([7_200, 7_200])
  })
})
