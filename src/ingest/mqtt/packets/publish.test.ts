import { Buffer } from 'node:buffer'
import fc from 'fast-check'
import { generate } from 'mqtt-packet'
import { describe, expect, test } from 'vitest'
import { runs } from '../../../../test/support/thorough.ts'
import { LastTopic, type ProtocolVersion, readPublish } from './publish.ts'
import { MqttError } from './reason.ts'

/** Where the variable header starts. */
function bodyAt(bytes: Buffer): number {
  let at = 1
  while (((bytes[at] ?? 0) & 0x80) !== 0) at += 1
  return at + 1
}

/** Reads from the middle of a larger buffer, so that reading beyond the packet would find something. */
function read(packet: Buffer, version: ProtocolVersion, filler = 0xa5) {
  const around = Buffer.alloc(packet.length + 64, filler)
  packet.copy(around, 32)
  return readPublish(around, 32, 32 + bodyAt(packet), 32 + packet.length, version, new LastTopic())
}

const text = fc.string({ unit: 'binary', maxLength: 20 }).filter((value) => !value.includes('\0'))
const topic = fc
  .array(fc.string({ unit: 'grapheme', maxLength: 5 }), { minLength: 1, maxLength: 10 })
  .map((levels) => levels.join('/'))
  .filter((value) => value !== '' && !/[+#\0]/.test(value))

const common = fc.record({
  topic,
  payload: fc.uint8Array({ maxLength: 300 }).map((bytes) => Buffer.from(bytes)),
  qos: fc.constantFrom(0 as const, 1 as const, 2 as const),
  messageId: fc.integer({ min: 1, max: 65_535 }),
  retain: fc.boolean(),
  dup: fc.boolean(),
})
const properties = fc.record(
  {
    payloadFormatIndicator: fc.boolean(),
    messageExpiryInterval: fc.nat(0xffff_ffff),
    topicAlias: fc.integer({ min: 1, max: 16 }),
    responseTopic: topic,
    correlationData: fc.uint8Array({ maxLength: 40 }).map((bytes) => Buffer.from(bytes)),
    contentType: text.filter((value) => value !== ''),
    userProperties: fc.dictionary(
      text.filter((name) => name !== '' && name !== '__proto__'),
      fc.oneof(text, fc.array(text, { minLength: 2, maxLength: 4 })),
      { minKeys: 1, maxKeys: 5, noNullPrototype: true },
    ),
  },
  { requiredKeys: [] },
)

type Sample = {
  readonly version: ProtocolVersion
  readonly sent: { readonly topic: string; readonly payload: Buffer; readonly qos: 0 | 1 | 2; readonly messageId: number }
  readonly properties: Record<string, unknown>
  readonly bytes: Buffer
}
const sample: fc.Arbitrary<Sample> = fc
  .record({ version: fc.constantFrom(4 as const, 5 as const), sent: common, properties })
  .map(({ version, sent, properties: all }) => {
    const used = version === 5 ? all : {}
    const packet = { cmd: 'publish' as const, ...sent, dup: sent.dup && sent.qos > 0, properties: used }
    return { version, sent, properties: used, bytes: generate(packet as never, { protocolVersion: version }) }
  })

describe('every PUBLISH that mqtt-packet writes', () => {
  test('is read correctly', () => {
    fc.assert(
      fc.property(sample, ({ version, sent, properties: used, bytes }) => {
        const found = read(bytes, version)
        expect(found).toMatchObject({
          qos: sent.qos,
          messageId: sent.qos === 0 ? 0 : sent.messageId,
          topic: sent.topic,
          topicAlias: used['topicAlias'] ?? 0,
        })
        expect(Buffer.compare(found.payload, sent.payload)).toBe(0)
        const pairs = Object.entries((used['userProperties'] ?? {}) as Record<string, string | string[]>).flatMap(
          ([name, values]) => [values].flat().map((value) => [name, value]),
        )
        expect(found.properties?.contentType).toBe(used['contentType'])
        expect(found.properties?.userProperties ?? []).toEqual(pairs)
      }),
      { numRuns: 1_000 },
    )
  })

  test('does not depend on the topics of earlier messages', () => {
    const topics = ['a', 'b', 'a/b', 'a/ü', 'ü/a', '+', '', 'a\0', 'a'.repeat(70)]
    fc.assert(
      fc.property(fc.array(fc.constantFrom(...topics)), (sequence) => {
        const lastTopic = new LastTopic()
        const outcome = (topic: string, last: LastTopic) => {
          const bytes = Buffer.from(`\x30\x00\x00${String.fromCharCode(Buffer.byteLength(topic))}${topic}x`)
          try {
            return readPublish(bytes, 0, 2, bytes.length, 4, last).topic
          } catch (error) {
            return String(error)
          }
        }
        for (const topic of sequence) expect(outcome(topic, lastTopic)).toBe(outcome(topic, new LastTopic()))
      }),
    )
  })

  test('cut anywhere before its payload, is refused; within it, the payload is shorter', () => {
    fc.assert(
      fc.property(sample, ({ version, sent, bytes }) => {
        const payloadAt = bytes.length - sent.payload.length
        for (let end = bodyAt(bytes); end < bytes.length; end += 1) {
          const cut = () =>
            readPublish(Buffer.concat([bytes.subarray(0, end), bytes]), 0, bodyAt(bytes), end, version, new LastTopic())
          if (end < payloadAt) expect(cut).toThrow(MqttError)
          else expect(cut().payload.length).toBe(end - payloadAt)
        }
      }),
      { numRuns: runs(40, 200) },
    )
  })

  test('with any byte changed, is refused or valid, whatever bytes surround it', () => {
    fc.assert(
      fc.property(sample, fc.nat(), fc.integer({ min: 0, max: 255 }), ({ version, bytes }, place, value) => {
        const body = bodyAt(bytes)
        const mutated = Buffer.from(bytes)
        // The packet reader checks the length, so only the rest is changed here.
        const at = place % (bytes.length - body + 1)
        if (at === 0) mutated[0] = 0x30 | (value & 0x0f)
        else mutated[body + at - 1] = value
        const outcomes = [0x00, 0xff].map((filler) => {
          try {
            return JSON.stringify(read(mutated, version, filler))
          } catch (error) {
            expect(error).toBeInstanceOf(MqttError)
            return String(error)
          }
        })
        expect(outcomes[0]).toBe(outcomes[1])
        const [outcome = ''] = outcomes
        if (outcome.startsWith('{')) {
          const found = read(mutated, version)
          expect(found.payload.length).toBeLessThanOrEqual(bytes.length - body)
          expect(found.topic).not.toMatch(/[+#\0]/)
          if (found.topic === '') expect(found.topicAlias).toBeGreaterThan(0)
          if (found.qos > 0) expect(found.messageId).toBeGreaterThan(0)
        }
      }),
      { numRuns: runs(1_000, 5_000) },
    )
  })
})

test('random bytes are either refused or read', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 60 }), fc.constantFrom(4 as const, 5 as const), (body, version) => {
      const bytes = Buffer.concat([Buffer.from([0x32, body.length]), body])
      try {
        expect(read(bytes, version).messageId).toBeGreaterThan(0)
      } catch (error) {
        expect(error).toBeInstanceOf(MqttError)
      }
    }),
    { numRuns: runs(1_000, 5_000) },
  )
})

test('the payload is a view, not a copy', () => {
  const bytes = generate({ cmd: 'publish', topic: 't', payload: 'abc', qos: 0, dup: false, retain: false })
  expect(readPublish(bytes, 0, 2, bytes.length, 4, new LastTopic()).payload.buffer).toBe(bytes.buffer)
})
