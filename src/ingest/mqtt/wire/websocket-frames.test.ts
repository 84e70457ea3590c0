import { Buffer } from 'node:buffer'
import type { EventEmitter } from 'node:events'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import * as ws from 'ws'
import { runs } from '../../../../test/support/thorough.ts'
import { wireLimits } from './limits.ts'
import { encodeClose, encodeFrame, FrameReader, opcodes } from './websocket-frames.ts'

/** Not in the types of ws. */
const { Receiver } = ws as unknown as {
  Receiver: new (
    options: object,
  ) => EventEmitter & { _write(chunk: Buffer, encoding: string, done: (error?: Error) => void): void }
}

type Sent = {
  opcode: number
  payload: Uint8Array
  isFinal?: boolean
  mask?: number
  isMasked?: boolean
  reserved?: number
  lengthBytes?: 0 | 2 | 8
}

/** Returns a frame of a client. `lengthBytes` makes the length longer than it needs to be. */
function frame({
  opcode,
  payload,
  isFinal = true,
  mask = 0x1f9a03c7,
  isMasked = true,
  reserved = 0,
  lengthBytes = 0,
}: Sent): Buffer {
  const { length } = payload
  const extended = Math.max(lengthBytes, length > 0xffff ? 8 : length > 125 ? 2 : 0)
  const head = Buffer.alloc(2 + extended + (isMasked ? 4 : 0))
  head[0] = (isFinal ? 0x80 : 0) | (reserved << 4) | opcode
  head[1] = (isMasked ? 0x80 : 0) | (extended === 0 ? length : extended === 2 ? 126 : 127)
  if (extended === 2) head.writeUInt16BE(length, 2)
  if (extended === 8) head.writeBigUInt64BE(BigInt(length), 2)
  if (isMasked) head.writeUInt32BE(mask, 2 + extended)
  const key = head.subarray(2 + extended)
  return Buffer.concat([head, isMasked ? payload.map((byte, at) => byte ^ (key[at % 4] ?? 0)) : payload])
}

type Seen = {
  data: Buffer
  pings: string[]
  close: string | undefined
  invalid: number | undefined
  reason: string | undefined
  calls: number[]
}

function read(chunks: readonly Buffer[]): Seen {
  const parts: Buffer[] = []
  const seen: Seen = { data: Buffer.alloc(0), pings: [], close: undefined, invalid: undefined, reason: undefined, calls: [] }
  let calls = 0
  const reader = new FrameReader({
    data: (bytes) => {
      calls += 1
      parts.push(Buffer.from(bytes))
      expect(seen.close ?? seen.invalid).toBeUndefined()
    },
    ping: (payload) => seen.pings.push(payload.toString('hex')),
    close: (payload) => {
      expect(seen.close ?? seen.invalid).toBeUndefined()
      seen.close = payload.toString('hex')
    },
    invalid: (closeCode, message) => {
      expect(seen.close ?? seen.invalid).toBeUndefined()
      seen.invalid = closeCode
      seen.reason = message
    },
  })
  for (const chunk of chunks) {
    calls = 0
    reader.push(Buffer.from(chunk))
    seen.calls.push(calls)
  }
  return { ...seen, data: Buffer.concat(parts) }
}

/** Reads the same chunks with the npm package ws. */
function readWithWs(chunks: readonly Buffer[]): Omit<Seen, 'calls' | 'reason'> {
  const parts: Buffer[] = []
  const seen: Omit<Seen, 'calls' | 'reason'> = { data: Buffer.alloc(0), pings: [], close: undefined, invalid: undefined }
  const receiver = new Receiver({
    isServer: true,
    maxPayload: wireLimits.frameBytesMax,
    maxFragments: wireLimits.frameFragmentsMax,
  })
  receiver.on('message', (bytes: Buffer, isBinary: boolean) => {
    if (isBinary) parts.push(Buffer.from(bytes))
    else seen.invalid ??= 1003
  })
  receiver.on('ping', (payload: Buffer) => seen.pings.push(payload.toString('hex')))
  receiver.on('conclude', (code: number, reason: Buffer) => {
    seen.close = code === 1005 ? '' : Buffer.concat([encodeClose(code), reason]).toString('hex')
  })
  receiver.on('error', () => undefined)
  for (const chunk of chunks) {
    if (seen.close !== undefined || seen.invalid !== undefined) break
    // Unlike `write`, it reports an error at once.
    receiver._write(Buffer.from(chunk), 'buffer', (error) => {
      if (error === undefined) return
      const code = Object.getOwnPropertySymbols(error).find(({ description }) => description === 'status-code')
      seen.invalid ??= (error as unknown as Record<symbol, number>)[code ?? Symbol()]
    })
  }
  return { ...seen, data: Buffer.concat(parts) }
}

function split(bytes: Buffer, cuts: readonly number[]): Buffer[] {
  const at = [0, ...cuts.map((cut) => cut % (bytes.length + 1)).sort((a, b) => a - b), bytes.length]
  return at.slice(1).map((end, index) => bytes.subarray(at[index], end))
}

const payloads = fc.oneof(
  { weight: 16, arbitrary: fc.uint8Array({ maxLength: 300 }) },
  fc.constantFrom(0, 1, 125, 126, 127, 65_535, 65_536, 70_001).map((n) => Uint8Array.from({ length: n }, (_, at) => at * 7)),
)
const masks = fc.oneof(fc.integer({ min: 0, max: 0xffff_ffff }), fc.constant(0))
const cuts = fc.array(fc.nat(), { maxLength: 40 })

/** Messages in fragments, with control frames in between. */
const conversations = fc.array(
  fc.oneof(
    fc
      .record({ parts: fc.array(payloads, { minLength: 1, maxLength: 5 }), mask: masks, lengthBytes: fc.constantFrom(0, 2, 8) })
      .chain(({ parts, mask, lengthBytes }) =>
        fc.array(fc.constantFrom(opcodes.ping, opcodes.pong), { maxLength: 2 }).map((between) =>
          parts.flatMap((payload, index) => [
            frame({
              opcode: index === 0 ? opcodes.binary : opcodes.continuation,
              payload,
              isFinal: index === parts.length - 1,
              mask,
              lengthBytes: lengthBytes as 0 | 2 | 8,
            }),
            ...between.map((opcode) => frame({ opcode, payload: payload.subarray(0, 125), mask })),
          ]),
        ),
      ),
    fc.uint8Array({ maxLength: 125 }).map((payload) => [frame({ opcode: opcodes.ping, payload })]),
  ),
  { maxLength: 6 },
)

const hostile = fc.record({
  opcode: fc.integer({ min: 0, max: 15 }),
  payload: fc.oneof(fc.uint8Array({ maxLength: 140 }), fc.integer({ min: 0, max: 0xffff }).map(encodeClose)),
  isFinal: fc.boolean(),
  isMasked: fc.integer({ min: 0, max: 9 }).map((n) => n > 0),
  reserved: fc.constantFrom(0, 0, 0, 0, 0, 1, 2, 4),
  lengthBytes: fc.constantFrom<0 | 2 | 8>(0, 0, 0, 2, 8),
})

describe('frames cut anywhere', () => {
  test('give the bytes of their messages, at most once per chunk, and what ws gives', () => {
    fc.assert(
      fc.property(conversations, cuts, (conversation, at) => {
        const chunks = split(Buffer.concat(conversation.flat()), at)
        const { calls, reason, ...seen } = read(chunks)
        expect(reason).toBeUndefined()
        expect(seen).toEqual(readWithWs(chunks))
        expect(Math.max(...calls)).toBeLessThanOrEqual(1)
      }),
      { numRuns: runs(300, 3_000) },
    )
  })

  test('that are valid or not end with the close code of ws', () => {
    fc.assert(
      fc.property(conversations, fc.array(hostile, { minLength: 1, maxLength: 4 }), cuts, (conversation, frames, at) => {
        const chunks = split(Buffer.concat([...conversation.flat(), ...frames.map(frame)]), at)
        const seen = read(chunks)
        const expected = readWithWs(chunks)
        // ws reads a text message to its end, and its fragments, before it can be refused.
        if (seen.invalid === 1003) return
        expect({ ...seen, data: undefined, calls: undefined, reason: undefined }).toEqual({
          ...expected,
          data: undefined,
          calls: undefined,
          reason: undefined,
        })
        // ws drops a message that is not complete.
        expect(seen.data.subarray(0, expected.data.length).equals(expected.data)).toBe(true)
      }),
      { numRuns: runs(500, 5_000) },
    )
  })

  test('may arrive byte by byte', () => {
    const payload = Buffer.from('0123456789'.repeat(20))
    const bytes = Buffer.concat([
      frame({ opcode: opcodes.binary, payload, isFinal: false }),
      frame({ opcode: opcodes.ping, payload: Buffer.from('ping') }),
      frame({ opcode: opcodes.continuation, payload }),
      frame({ opcode: opcodes.close, payload: Buffer.concat([encodeClose(1000), Buffer.from('bye')]) }),
      frame({ opcode: opcodes.binary, payload }),
    ])
    const seen = read([...bytes].map((byte) => Buffer.from([byte])))
    expect(seen.data.toString()).toBe(payload.toString().repeat(2))
    expect(seen.pings).toEqual([Buffer.from('ping').toString('hex')])
    expect(seen.close).toBe(`03e8${Buffer.from('bye').toString('hex')}`)
  })
})

describe('a frame is refused', () => {
  const fragment = frame({ opcode: opcodes.binary, payload: Buffer.from('x'), isFinal: false })
  test.each([
    [
      'with a reserved bit',
      [frame({ opcode: opcodes.binary, payload: Buffer.alloc(1), reserved: 4 })],
      1002,
      'a reserved bit is set',
    ],
    ['with an opcode of none', [frame({ opcode: 3, payload: Buffer.alloc(1) })], 1002, 'there is no opcode 3'],
    ['with an opcode of none above 10', [frame({ opcode: 11, payload: Buffer.alloc(1) })], 1002, 'there is no opcode 11'],
    [
      'that is not masked',
      [frame({ opcode: opcodes.binary, payload: Buffer.alloc(1), isMasked: false })],
      1002,
      'it is not masked',
    ],
    ['that is a text', [frame({ opcode: opcodes.text, payload: Buffer.from('text') })], 1003, 'it is not binary'],
    [
      'that continues nothing',
      [frame({ opcode: opcodes.continuation, payload: Buffer.alloc(1) })],
      1002,
      'it continues a message that has not started',
    ],
    [
      'that starts within a message',
      [fragment, frame({ opcode: opcodes.binary, payload: Buffer.alloc(1) })],
      1002,
      'a message starts before the previous one has ended',
    ],
    [
      'that is a fragmented ping',
      [frame({ opcode: opcodes.ping, payload: Buffer.alloc(1), isFinal: false })],
      1002,
      'a control frame is fragmented',
    ],
    [
      'that is a long ping',
      [frame({ opcode: opcodes.ping, payload: Buffer.alloc(126) })],
      1002,
      'a control frame is longer than 125 bytes',
    ],
    [
      'with half a close code',
      [frame({ opcode: opcodes.close, payload: Buffer.alloc(1) })],
      1002,
      'the code of a close frame is not valid',
    ],
    ...[999, 1004, 1005, 1006, 1015, 2999, 5000].map(
      (code) =>
        [
          `with the close code ${code}`,
          [frame({ opcode: opcodes.close, payload: encodeClose(code) })],
          1002,
          'the code of a close frame is not valid',
        ] as const,
    ),
    [
      'with a reason that is not UTF-8',
      [frame({ opcode: opcodes.close, payload: Buffer.from([3, 0xe8, 0xff]) })],
      1007,
      'the reason of a close frame is not UTF-8',
    ],
    [
      'of more than 2 MiB, by its announced length',
      [frame({ opcode: opcodes.binary, payload: Buffer.alloc(2 * 1024 * 1024 + 1) }).subarray(0, 14)],
      1009,
      'a message is longer than 2097152 bytes',
    ],
    [
      'of 2^63 bytes',
      [Buffer.from([0x82, 0xff, 0x80, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4])],
      1009,
      'a message is longer than 2097152 bytes',
    ],
  ] as const)('%s', (_, frames, closeCode, reason) => {
    expect(read(frames)).toMatchObject({ invalid: closeCode, reason })
  })

  test('if fragments make a message longer than 2 MiB together, or are more than 4 096', () => {
    const first = frame({ opcode: opcodes.binary, payload: Buffer.alloc(2 * 1024 * 1024), isFinal: false })
    const more = frame({ opcode: opcodes.continuation, payload: Buffer.alloc(1), isFinal: false })
    expect(read([first])).toMatchObject({ invalid: undefined })
    expect(read([first, more])).toMatchObject({ invalid: 1009 })
    const start = frame({ opcode: opcodes.binary, payload: Buffer.alloc(1), isFinal: false })
    const fragments = Array.from({ length: 4_096 }, () => more)
    expect(read([start, ...fragments.slice(1)])).toMatchObject({ invalid: undefined })
    expect(read([start, ...fragments])).toMatchObject({ invalid: 1008 })
    // The next message starts from zero.
    const last = frame({ opcode: opcodes.continuation, payload: Buffer.alloc(1) })
    expect(read([start, ...fragments.slice(2), last, start, ...fragments.slice(2), last])).toMatchObject({ invalid: undefined })
  })

  test('after it, and after a close frame, nothing is read; what came before it is', () => {
    const one = (text: string) => frame({ opcode: opcodes.binary, payload: Buffer.from(text) })
    const text = frame({ opcode: opcodes.text, payload: Buffer.from('text') })
    const close = frame({ opcode: opcodes.close, payload: Buffer.alloc(0) })
    const ping = frame({ opcode: opcodes.ping, payload: Buffer.alloc(0) })
    const invalid = read([Buffer.concat([one('before'), text, one('after'), ping]), one('later'), close])
    expect(invalid).toMatchObject({ data: Buffer.from('before'), invalid: 1003, close: undefined, pings: [] })
    const closed = read([Buffer.concat([one('before'), close, one('after'), ping]), one('later'), text])
    expect(closed).toMatchObject({ data: Buffer.from('before'), invalid: undefined, close: '', pings: [] })
  })
})

test.each([0, 1, 125, 126, 65_535, 65_536, 100_000])('a client understands a frame of %i bytes', async (length) => {
  const sent = Buffer.alloc(length, 'x')
  const receiver = new Receiver({})
  const received = new Promise<Buffer>((resolve) => receiver.once('message', resolve))
  receiver._write(encodeFrame(opcodes.binary, sent), 'buffer', () => undefined)
  expect((await received).equals(sent)).toBe(true)
})
