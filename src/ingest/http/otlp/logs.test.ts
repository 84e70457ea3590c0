import { Buffer } from 'node:buffer'
import { readFileSync } from 'node:fs'
import { BinaryWriter, WireType } from '@bufbuild/protobuf/wire'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { runs } from '../../../../test/support/thorough.ts'
import { recordsInJson } from './json-logs.ts'
import { OtlpError } from './otlp-error.ts'
import { recordsInProtobuf } from './protobuf-logs.ts'

/** The same request: written by hand, and as a Collector 0.159 sent it on. */
const fixture = (name: string) => readFileSync(new URL(`../../../../test/fixtures/otlp/${name}`, import.meta.url))

const fromJson = (json: unknown) => [...recordsInJson(JSON.stringify(json))]
const fromProtobuf = (bytes: Uint8Array) => [...recordsInProtobuf(bytes)]
const parsed = (texts: readonly string[]): unknown[] => texts.map((text) => JSON.parse(text))

/** Wraps records in a request without resource and scope. */
const request = (...logRecords: readonly unknown[]) => ({ resourceLogs: [{ scopeLogs: [{ logRecords }] }] })

describe('a record', () => {
  const scope = { name: 'lib', version: '1.2', attributes: { s: true }, schema_url: 'https://s' }

  test.each([
    ['JSON', () => [...recordsInJson(fixture('logs.json').toString())]],
    ['Protobuf', () => fromProtobuf(fixture('logs.pb'))],
  ])('has its resource and scope: %s', (_, read) => {
    const texts = read()
    expect(texts[0]).toContain('"n":9007199254740993')
    expect(parsed(texts)).toEqual([
      {
        time: '2025-11-23T08:15:30.000000001Z',
        observed_time: '2025-11-23T08:15:31.123456789Z',
        severity_number: 9,
        severity_text: 'INFO',
        event_name: 'e',
        body: 'hello ü',
        attributes: { 'http.status': 200, d: 1.5, a: ['x', -7], m: { k: 'aGk=' } },
        trace_id: '5b8efff798038103d269b633813fc60c',
        span_id: 'eee19b7ec3c1b174',
        flags: 1,
        resource: { 'service.name': 'shop', n: JSON.parse('9007199254740993') },
        scope,
      },
      {
        time: '2025-11-23T08:15:31.123456789Z',
        observed_time: '2025-11-23T08:15:31.123456789Z',
        body: { x: null },
        resource: { 'service.name': 'shop', n: JSON.parse('9007199254740993') },
        scope,
      },
    ])
  })

  test('without anything is an object with an empty body', () => {
    expect(fromJson(request({}))).toEqual(['{"body":null}'])
  })

  test('keeps numbers that JSON has not, and names that objects have', () => {
    const attributes = [
      { key: 'nan', value: { doubleValue: 'NaN' } },
      { key: 'low', value: { doubleValue: '-Infinity' } },
      { key: 'min', value: { intValue: '-9223372036854775808' } },
      { key: '__proto__', value: { stringValue: 'p' } },
      { key: 'none', value: {} },
    ]
    expect(fromJson(request({ attributes }))).toEqual([
      '{"body":null,"attributes":{"nan":"NaN","low":"-Infinity","min":-9223372036854775808,"__proto__":"p","none":null}}',
    ])
  })
})

describe('JSON that is refused', () => {
  const value = (json: unknown) => request({ body: json })
  test.each<[string, unknown, string]>([
    ['another document', { event: 'signup' }, 'the body has no resourceLogs'],
    ['an array', [], 'the body must be an object'],
    ['an object for an array', { resourceLogs: {} }, 'resourceLogs must be an array'],
    ['a number for a record', request({}, 7), 'resourceLogs[0].scopeLogs[0].logRecords[1] must be an object'],
    [
      'a date',
      request({ timeUnixNano: '2026-01-01' }),
      'resourceLogs[0].scopeLogs[0].logRecords[0].timeUnixNano must be an integer',
    ],
    ['a time before 1970', request({ timeUnixNano: '-1' }), 'logRecords[0].timeUnixNano must be nanoseconds'],
    ['an id in Base64', request({ traceId: 'W47/95gDgQPSabYzgT/GDA==' }), 'traceId must be an id in hexadecimal'],
    ['the name of a severity', request({ severityNumber: 'INFO' }), 'severityNumber must be an integer'],
    ['a number as text', value({ stringValue: 1 }), 'logRecords[0].body: stringValue must be a string'],
    ['a text as boolean', value({ boolValue: 'yes' }), 'body: boolValue must be true or false'],
    ['a text as number', value({ doubleValue: 'many' }), 'body: doubleValue must be a number'],
    ['a plain value', value('text'), 'logRecords[0].body must be an object'],
    ['a deep value', value(nested(70, { arrayValue: { values: [] } })), 'nested deeper than 64 levels'],
  ])('%s', (_, json, message) => {
    expect(() => fromJson(json)).toThrow(OtlpError)
    expect(() => fromJson(json)).toThrow(message)
  })

  test('no JSON', () => {
    expect(() => [...recordsInJson('{')]).toThrow(OtlpError)
    expect(() => [...recordsInJson('{')]).toThrow('the body is not valid JSON')
  })
})

test('a request without records has none: {} and no bytes', () => {
  expect([fromJson({}), fromJson({ resourceLogs: [] }), fromProtobuf(new Uint8Array())]).toEqual([[], [], []])
})

test('Protobuf that is nested too deep is refused, at any depth', () => {
  for (const levels of [70, 1_000]) {
    const bytes = encode(request({ body: nested(levels, { arrayValue: { values: [] } }) }))
    expect(() => fromProtobuf(bytes)).toThrow(OtlpError)
    expect(() => fromProtobuf(bytes)).toThrow('nested deeper than 64 levels')
  }
})

test('unknown fields of Protobuf are skipped, and so are known ones of another type', () => {
  const record = new BinaryWriter()
  record.tag(3, WireType.LengthDelimited).string('INFO')
  record.tag(99, WireType.LengthDelimited).string('new')
  record.tag(98, WireType.Varint).int32(7)
  record.tag(97, WireType.Bit64).fixed64(7n)
  record.tag(2, WireType.LengthDelimited).string('not a number')
  const bytes = message(1, message(2, message(2, record.finish())))
  expect(fromProtobuf(bytes)).toEqual(['{"severity_text":"INFO","body":null}'])
})

test('the cut of a Protobuf body is refused, or has fewer records: never another error', () => {
  const bytes = fixture('logs.pb')
  for (let length = 0; length < bytes.length; length += 1) {
    const records = orRefused(() => fromProtobuf(bytes.subarray(0, length)))
    expect(records === 'refused' || records.length === 0, `${length} bytes`).toBe(true)
  }
})

describe('properties', () => {
  test('JSON and Protobuf of the same request have the same records', () => {
    fc.assert(
      fc.property(anyRequest(), (json) => {
        expect(fromProtobuf(encode(json))).toEqual(fromJson(json))
      }),
      { numRuns: runs(300, 5_000) },
    )
  })

  test('damaged Protobuf is read or refused', () => {
    fc.assert(
      fc.property(anyRequest(), fc.array(fc.tuple(fc.nat(), fc.nat(255))), (json, changes) => {
        const bytes = encode(json)
        for (const [at, byte] of changes) if (bytes.length > 0) bytes[at % bytes.length] = byte
        const records = orRefused(() => fromProtobuf(bytes))
        if (records !== 'refused') for (const record of records) JSON.parse(record)
      }),
      { numRuns: runs(500, 20_000) },
    )
  })

  test('JSON of any shape is read or refused', () => {
    const key = fc.constantFrom('resourceLogs', 'scopeLogs', 'logRecords', 'body', 'attributes', 'key', 'value', 'intValue')
    const { shape } = fc.letrec<{ shape: unknown }>((tie) => ({
      shape: fc.oneof(
        { maxDepth: 8 },
        fc.constantFrom(null, 1, -1.5, 'x', true),
        fc.dictionary(key, tie('shape'), { maxKeys: 3 }),
        fc.array(tie('shape'), { maxLength: 3 }),
      ),
    }))
    fc.assert(
      fc.property(shape, (json) => {
        const records = orRefused(() => fromJson({ resourceLogs: json }))
        if (records !== 'refused') for (const record of records) JSON.parse(record)
      }),
      { numRuns: runs(500, 20_000) },
    )
  })
})

function orRefused(read: () => readonly string[]): readonly string[] | 'refused' {
  try {
    return read()
  } catch (error) {
    if (error instanceof OtlpError) return 'refused'
    throw error
  }
}

function nested(levels: number, inner: unknown): unknown {
  let value = inner
  for (let level = 0; level < levels; level += 1) value = { arrayValue: { values: [value] } }
  return value
}

type Value = Readonly<Record<string, unknown>>
type Pair = { readonly key: string; readonly value: Value }
type Listed = { readonly values: readonly unknown[] }

function anyRequest() {
  const { value } = fc.letrec<{ value: Value; pairs: Pair[] }>((tie) => ({
    value: fc.oneof(
      { maxDepth: 4 },
      fc.constant({}),
      fc.record({ stringValue: fc.string({ unit: 'binary' }) }),
      fc.record({ boolValue: fc.boolean() }),
      fc.record({ intValue: fc.bigInt(-(2n ** 63n), 2n ** 63n - 1n).map(String) }),
      fc.record({ doubleValue: fc.double().map((number) => (Number.isFinite(number) ? number : String(number))) }),
      fc.record({ bytesValue: fc.uint8Array().map((bytes) => Buffer.from(bytes).toString('base64')) }),
      fc.record({ arrayValue: fc.record({ values: fc.array(tie('value'), { maxLength: 3 }) }) }),
      fc.record({ kvlistValue: fc.record({ values: tie('pairs') }) }),
    ),
    pairs: fc.array(fc.record({ key: fc.string(), value: tie('value') }), { maxLength: 3 }),
  }))
  const attributes = fc.array(fc.record({ key: fc.string(), value }), { maxLength: 3 })
  const nanos = fc.bigInt(0n, 2n ** 64n - 1n).map(String)
  const hex = (bytes: number) => fc.oneof(fc.constant(''), fc.stringMatching(new RegExp(`^[0-9a-f]{${2 * bytes}}$`)))
  const record = fc.record({
    timeUnixNano: nanos,
    observedTimeUnixNano: nanos,
    severityNumber: fc.nat(24),
    severityText: fc.string(),
    body: value,
    attributes,
    droppedAttributesCount: fc.nat(),
    flags: fc.nat(),
    traceId: hex(16),
    spanId: hex(8),
    eventName: fc.string(),
  })
  const scope = fc.record({ name: fc.string(), version: fc.string(), attributes })
  const scopeLogs = fc.record({ scope, schemaUrl: fc.string(), logRecords: fc.array(record, { maxLength: 3 }) })
  const resourceLogs = fc.record({
    resource: fc.record({ attributes }),
    schemaUrl: fc.string(),
    scopeLogs: fc.array(scopeLogs, { maxLength: 2 }),
  })
  return fc.record({ resourceLogs: fc.array(resourceLogs, { maxLength: 2 }) })
}

/** Writes what the JSON says as Protobuf, by the definitions of OpenTelemetry. */
function encode(json: unknown): Uint8Array {
  const { resourceLogs = [] } = json as { resourceLogs?: readonly Value[] }
  return Buffer.concat(
    resourceLogs.map(({ resource, schemaUrl, scopeLogs }) =>
      message(
        1,
        ...(resource === undefined ? [] : [message(1, ...pairs(1, (resource as Value)['attributes']))]),
        ...(scopeLogs as readonly Value[]).map(encodeScope),
        text(3, schemaUrl),
      ),
    ),
  )
}

function encodeScope({ scope, schemaUrl, logRecords }: Value): Uint8Array {
  const { name, version, attributes } = (scope ?? {}) as Value
  const head = message(1, text(1, name), text(2, version), ...pairs(3, attributes))
  return message(
    2,
    head,
    ...(logRecords as readonly Value[]).map((record) => message(2, encodeRecord(record))),
    text(3, schemaUrl),
  )
}

function encodeRecord(record: Value): Uint8Array {
  const writer = new BinaryWriter()
  const { timeUnixNano = 0, observedTimeUnixNano = 0, severityNumber = 0, droppedAttributesCount = 0, flags = 0 } = record
  writer.tag(1, WireType.Bit64).fixed64(BigInt(timeUnixNano as string))
  writer.tag(11, WireType.Bit64).fixed64(BigInt(observedTimeUnixNano as string))
  writer.tag(2, WireType.Varint).int32(severityNumber as number)
  writer.tag(7, WireType.Varint).uint32(droppedAttributesCount as number)
  writer.tag(8, WireType.Bit32).fixed32(flags as number)
  writer.tag(9, WireType.LengthDelimited).bytes(Buffer.from(String(record['traceId'] ?? ''), 'hex'))
  writer.tag(10, WireType.LengthDelimited).bytes(Buffer.from(String(record['spanId'] ?? ''), 'hex'))
  const body = record['body'] === undefined ? [] : [message(5, encodeValue(record['body'] as Value))]
  return Buffer.concat([
    writer.finish(),
    text(3, record['severityText']),
    text(12, record['eventName']),
    ...body,
    ...pairs(6, record['attributes']),
  ])
}

function encodeValue(value: Value): Uint8Array {
  const writer = new BinaryWriter()
  const [name, content] = Object.entries(value)[0] ?? []
  if (name === 'stringValue') writer.tag(1, WireType.LengthDelimited).string(content as string)
  if (name === 'boolValue') writer.tag(2, WireType.Varint).bool(content as boolean)
  if (name === 'intValue') writer.tag(3, WireType.Varint).int64(BigInt(content as string))
  if (name === 'doubleValue') writer.tag(4, WireType.Bit64).double(Number(content))
  if (name === 'bytesValue') writer.tag(7, WireType.LengthDelimited).bytes(Buffer.from(content as string, 'base64'))
  if (name === 'arrayValue') {
    const { values } = content as Listed
    return message(5, ...values.map((item) => message(1, encodeValue(item as Value))))
  }
  if (name === 'kvlistValue') return message(6, ...pairs(1, (content as Listed).values))
  return writer.finish()
}

function pairs(field: number, attributes: unknown): Uint8Array[] {
  return ((attributes ?? []) as readonly Pair[]).map(({ key, value }) =>
    message(field, text(1, key), message(2, encodeValue(value))),
  )
}

function text(field: number, value: unknown): Uint8Array {
  return new BinaryWriter()
    .tag(field, WireType.LengthDelimited)
    .string(String(value ?? ''))
    .finish()
}

function message(field: number, ...parts: readonly Uint8Array[]): Uint8Array {
  return new BinaryWriter().tag(field, WireType.LengthDelimited).bytes(Buffer.concat(parts)).finish()
}
