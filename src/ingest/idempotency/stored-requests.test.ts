import { Buffer } from 'node:buffer'
import { mkdtemp, open, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { type Files, systemFiles } from '#lib/files.ts'
import { createLogger } from '#lib/telemetry.ts'
import { hourMs } from '#lib/time-units.ts'
import type { FrameInput } from '#log/frame.ts'
import { encodeEnvelope, idempotencyProperty } from '#model/record-envelope.ts'
import { CheckedClock } from '#node/checked-clock.ts'
import { ManualClock } from '../../../test/support/manual-clock.ts'
import { until } from '../../../test/support/until.ts'
import { readIdempotencyKey } from '../gate/idempotency-key.ts'
import { DigestIndex } from './digest-index.ts'
import { StoredRequests } from './stored-requests.ts'

const endpoint = '0b8fbf52-0d6e-4f0f-9a83-7f8f9c1d2e3f'
const other = '11111111-2222-4333-8444-555555555555'

let directory = ''
const logger = createLogger('test', 'silent')
let clock = new ManualClock()
let checked = new CheckedClock({ machine: clock, logger })
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'inlet-requests-'))
  clock = new ManualClock()
  checked = new CheckedClock({ machine: clock, logger })
  checked.observe(clock.now(), clock.monotonic())
})
afterEach(() => rm(directory, { recursive: true }))

async function start({ max = 1_000, files = systemFiles }: { max?: number; files?: Files } = {}): Promise<StoredRequests> {
  const requests = new StoredRequests({ directory, max, files, clock: checked, logger })
  await requests.start()
  return requests
}

async function keyFiles(): Promise<readonly string[]> {
  return (await readdir(directory)).filter((name) => name.endsWith('.requests'))
}

let seq = 0
/** Sends a body with a key to a log that stores at once. */
async function send(requests: StoredRequests, key: string, body = '{}', to = endpoint, envelope: Uint8Array = Buffer.alloc(0)) {
  const frame: FrameInput = {
    ...{ layout: 'lines', receivedAtMicros: clock.now() * 1000, recordCount: 1, envelope },
    payload: [Buffer.from(body)],
  }
  return await requests.once(to, key, frame, async () => {
    seq += 1
    requests.appended(seq, [frame])
    return { seq }
  })
}

describe('a repetition', () => {
  test('has the receipt of the first time, before and after it is written, and after a restart', async () => {
    const first = await start()
    const receipt = await send(first, 'a', '{"a":1}')
    expect(receipt).toMatchObject({ records: 1, bytes: 7, isRepeated: false })
    const repeated = { ...receipt, isRepeated: true }
    expect(await send(first, 'a', '{"a":1}')).toEqual(repeated)
    await first.beforeSeal()
    expect(await send(first, 'a', '{"a":1}')).toEqual(repeated)
    await first.stop()
    const second = await start()
    expect(await send(second, 'a', '{"a":1}')).toEqual(repeated)
    await second.stop()
  })

  test('of a message has the topic of the first time, also after a crash', async () => {
    const message = (topic: string) =>
      encodeEnvelope({ protocol: 'mqtt', topic, client_id: 'c', user_properties: { [idempotencyProperty]: 'a' } })
    const live = await start()
    await send(live, 'a', '1', endpoint, message('plant/7'))
    const crashed = await start({ max: 10 })
    const frame = { layout: 'lines', receivedAtMicros: clock.now() * 1000, recordCount: 1, envelope: message('plant/7') } as const
    crashed.recovering(endpoint, 1).recovered({ ...frame, payload: Buffer.from('1') })
    for (const requests of [live, crashed]) {
      expect(await send(requests, 'a', '1', endpoint, message('plant/7'))).toMatchObject({ isRepeated: true })
      const reused = expect.objectContaining({ outcome: 'idempotency_key_reused' })
      await expect(send(requests, 'a', '1', endpoint, message('plant/8'))).rejects.toEqual(reused)
      await requests.stop()
    }
  })

  test('is stored if the records of the first time are lost, also after a restart', async () => {
    const message = (key: string) => encodeEnvelope({ protocol: 'http', idempotency_key: key })
    const first = await start()
    const repeated = (requests: StoredRequests, key: string) => send(requests, key, '1', endpoint, message(key))
    const receipts = new Map<string, number>()
    for (const key of ['a', 'b', 'c']) receipts.set(key, (await repeated(first, key)).seq)
    await first.stop()
    const second = await start()
    // Segment b keeps its frame, and lost others; segment a lost all.
    const intact = second.recovering(endpoint, receipts.get('b') ?? 0)
    const frame = { layout: 'lines', receivedAtMicros: clock.now() * 1000, recordCount: 1, envelope: message('b') } as const
    intact.recovered({ ...frame, payload: Buffer.from('1') })
    await Promise.all([intact.lost(), second.recovering(endpoint, receipts.get('a') ?? 0).lost()])
    await second.stop()
    const third = await start()
    for (const [key, seq] of [...receipts].slice(1)) expect(await repeated(third, key)).toMatchObject({ seq, isRepeated: true })
    for (const isRepeated of [false, true]) expect(await repeated(third, 'a')).toMatchObject({ isRepeated })
    expect(third.damaged).toBe(0)
    await third.stop()
  })

  test('waits for the first time while that is on its way, and takes its place if it fails', async () => {
    const requests = await start()
    const frame = { layout: 'lines', receivedAtMicros: 0, recordCount: 1, envelope: Buffer.alloc(0), payload: [] } as const
    const failing = Promise.withResolvers<never>()
    const first = requests.once(endpoint, 'a', frame, () => failing.promise)
    const rest = [send(requests, 'a', ''), send(requests, 'a', '')]
    failing.reject(new Error('the disk failed'))
    await expect(first).rejects.toThrow('the disk failed')
    const [second, third] = await Promise.all(rest)
    expect(second?.isRepeated).toBe(false)
    expect(third).toEqual({ ...second, isRepeated: true })
    await requests.stop()
  })

  test('with other records is refused; another endpoint may use the same key', async () => {
    const requests = await start()
    await send(requests, 'a', '1')
    await expect(send(requests, 'a', '2')).rejects.toMatchObject({ outcome: 'idempotency_key_reused' })
    expect(await send(requests, 'a', '2', other)).toMatchObject({ isRepeated: false })
    await requests.stop()
  })

  test('after 24 hours is new, and its file is removed', async () => {
    const requests = await start()
    await send(requests, 'a')
    await requests.beforeSeal()
    clock.advance(24 * hourMs - 1)
    expect(await send(requests, 'a')).toMatchObject({ isRepeated: true })
    clock.advance(2)
    expect(await send(requests, 'a')).toMatchObject({ isRepeated: false })
    await requests.beforeSeal()
    clock.advance(26 * hourMs)
    await requests.stop()
    const later = await start()
    expect(await keyFiles()).toEqual([])
    expect(later.count).toBe(0)
    await later.stop()
  })
})

describe('a clock that is wrong forgets no key', () => {
  const day = 24 * hourMs
  const restarted = () => {
    checked = new CheckedClock({ machine: clock, logger })
  }

  test.each([30 * hourMs, -30 * hourMs])('if that of the machine jumps by %d ms while the node runs', async (jump) => {
    const requests = await start()
    await send(requests, 'a')
    await requests.beforeSeal()
    clock.jump(jump)
    clock.advance(hourMs)
    await requests.beforeSeal()
    expect(await send(requests, 'a')).toMatchObject({ isRepeated: true })
    await requests.stop()
    expect(await keyFiles()).toHaveLength(1)
  })

  test.each([30 * hourMs, -30 * hourMs])('if it is %d ms off at the start, without control and with it', async (off) => {
    const before = await start()
    await send(before, 'a')
    await before.stop()
    const time = clock.now()
    clock.jump(off)
    restarted()
    const requests = await start()
    expect(await send(requests, 'a')).toMatchObject({ isRepeated: true })
    await send(requests, 'b')
    clock.advance(hourMs)
    checked.observe(time + hourMs, clock.monotonic())
    // Requests stored by the wrong time are still known for a day.
    for (const key of ['a', 'b']) expect(await send(requests, key)).toMatchObject({ isRepeated: true })
    clock.advance(22 * hourMs)
    for (const key of ['a', 'b']) expect(await send(requests, key)).toMatchObject({ isRepeated: true })
    await requests.stop()
  })

  test('if that of control jumps', async () => {
    const requests = await start()
    await send(requests, 'a')
    await requests.beforeSeal()
    checked.observe(clock.now() + 30 * hourMs, clock.monotonic())
    clock.advance(23 * hourMs)
    expect(await send(requests, 'a')).toMatchObject({ isRepeated: true })
    clock.advance(day)
    expect(await send(requests, 'a')).toMatchObject({ isRepeated: false })
    await requests.stop()
  })

  test('if that of control is as wrong at a start, also after the next one', async () => {
    const before = await start()
    await send(before, 'a')
    await before.stop()
    clock.jump(30 * hourMs)
    for (let again = 0; again < 3; again += 1) {
      restarted()
      checked.observe(clock.now(), clock.monotonic())
      const requests = await start()
      // After a crash, a frame that was stored by the right time.
      const envelope = encodeEnvelope({ protocol: 'http', idempotency_key: 'b' })
      const frame = { layout: 'lines', receivedAtMicros: (clock.now() - 30 * hourMs) * 1000, recordCount: 1, envelope } as const
      requests.recovering(endpoint, 0).recovered({ ...frame, payload: Buffer.from('1') })
      for (const body of ['1', '1']) {
        expect(await send(requests, 'a')).toMatchObject({ isRepeated: true })
        expect(await send(requests, 'b', body, endpoint, envelope)).toMatchObject({ isRepeated: true })
        await requests.beforeSeal()
      }
      clock.advance(hourMs)
      await requests.stop()
    }
  })

  test.each([true, false])('files of earlier days go once the node has run for a day, with control: %s', async (isThere) => {
    const before = await start()
    await send(before, 'a')
    await before.stop()
    clock.advance(2 * day)
    // Starts do not begin the day anew.
    for (const ranHours of [13, 10, 3]) {
      restarted()
      if (isThere) checked.observe(clock.now(), clock.monotonic())
      const requests = await start()
      expect(await keyFiles()).toHaveLength(1)
      clock.advance(ranHours * hourMs)
      await requests.stop()
    }
    restarted()
    const requests = await start()
    if (!isThere) clock.advance(day)
    checked.observe(clock.now(), clock.monotonic())
    await until('the file to go', async () => {
      clock.advance(10_000)
      return (await readdir(directory)).length === 0
    })
    await requests.stop()
  })
})

describe('bounds', () => {
  test('an account may remember as many as others leave, and is told so', async () => {
    const requests = await start({ max: 100 })
    const account = (id: string) => ({ account_id: id, account_weight: 1 })
    requests.configure([
      { id: endpoint, ...account('a') },
      { id: other, ...account('b') },
    ])
    const stored = async (to: string) => {
      for (let count = 0; ; count += 1) {
        const refused = await send(requests, String(count), '1', to).then(
          () => undefined,
          (error: unknown) => error,
        )
        if (refused === undefined) continue
        expect(refused).toMatchObject({ outcome: 'no_room', message: expect.stringMatching(/^the account uses up its share/) })
        return count
      }
    }
    const first = await stored(endpoint)
    expect(first).toBeGreaterThan(30)
    expect(await stored(other)).toBeGreaterThan(20)
    // A known request still gets its response.
    expect(await send(requests, '0', '1')).toMatchObject({ isRepeated: true })
    await requests.stop()
  })

  test('while the disk takes none, new keys are refused, and those before are kept', async () => {
    let isFull = true
    const files: Files = {
      ...systemFiles,
      open: async (path, mode) => {
        const file = await systemFiles.open(path, mode)
        return new Proxy(file, {
          get: (target, name) => {
            if (name === 'write' && isFull) return () => Promise.reject(new Error('ENOSPC'))
            const value: unknown = Reflect.get(target, name)
            return typeof value === 'function' ? value.bind(target) : value
          },
        })
      },
    }
    const requests = await start({ files })
    await send(requests, 'a')
    await requests.beforeSeal()
    await expect(send(requests, 'b')).rejects.toMatchObject({ outcome: 'not_stored' })
    expect(await send(requests, 'a')).toMatchObject({ isRepeated: true })
    isFull = false
    await requests.beforeSeal()
    expect(await send(requests, 'b')).toMatchObject({ isRepeated: false })
    await requests.stop()
    const later = await start()
    expect(await send(later, 'a')).toMatchObject({ isRepeated: true })
    await later.stop()
  })

  test('a torn end of a file is cut, and what was before it is known', async () => {
    const first = await start({ max: 100_000 })
    for (let key = 0; key < 5_000; key += 1) await send(first, String(key))
    await first.stop()
    const [name = ''] = await keyFiles()
    const file = await open(join(directory, name), 'r+')
    await file.truncate(4_999 * 80 + 37)
    await file.close()
    const second = await start({ max: 100_000 })
    expect(await send(second, '4998')).toMatchObject({ isRepeated: true })
    expect(await send(second, '4999')).toMatchObject({ isRepeated: false })
    await second.stop()
    const third = await start({ max: 100_000 })
    expect(third.count).toBe(5_000)
    expect(await send(third, '4999')).toMatchObject({ isRepeated: true })
    await third.stop()
  })
})

test('a key is 1 to 255 visible characters, with or without quotes', () => {
  expect(readIdempotencyKey('8e03978e-40d5-43dd-bc93-6894a57f9324')).toBe('8e03978e-40d5-43dd-bc93-6894a57f9324')
  expect(readIdempotencyKey('"8e03"')).toBe('8e03')
  for (const wrong of ['', 'a b', 'ü', 'x'.repeat(256)]) {
    expect(() => readIdempotencyKey(wrong)).toThrow('1 to 255 visible ASCII characters')
  }
})

test('the index finds whatever was added', () => {
  const digest = fc.uint8Array({ minLength: 16, maxLength: 16 }).map((bytes) => Buffer.from(bytes.map((byte) => byte % 3)))
  fc.assert(
    fc.property(fc.array(digest, { maxLength: 300 }), (digests) => {
      const index = new DigestIndex()
      for (const [place, added] of digests.entries()) index.add(added, place)
      for (const [place, added] of digests.entries()) expect([...index.find(added)]).toContain(place)
    }),
  )
})
