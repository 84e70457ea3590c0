import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { MiB } from '#lib/bytes.ts'
import { anyCuts, anyJson, anySpace, readBody } from '../../../../test/support/body-records.ts'
import { runs } from '../../../../test/support/thorough.ts'
import { JsonBatch } from './json-batch.ts'

const read = (body: string, cuts: readonly number[] = []) => readBody(new JsonBatch(), body, cuts)

describe('a batch', () => {
  test.each([
    ['{"batch":[{"a":1},{"a":2}],"sentAt":"2026-11-23T04:50:00Z","writeKey":"k"}', ['{"a":1}', '{"a":2}']],
    [' {\n "sentAt" : 12.5 , "context":{"batch":[9]},"b":[1,{}], "batch" :\r\n [ {"a": [1]} , 7 ]\n}\n', ['{"a": [1]}', '7']],
    ['{"batchy":[1],"\\"batch":[2],"batch":["],}"],"x":null,"y":true}', ['"],}"']],
    ['{"batch":[]}', []],
  ])('%s has its events as records', (body, records) => {
    expect(read(body)).toEqual({ layout: 'lines', records })
    for (let cut = 0; cut <= body.length; cut += 1) expect(read(body, [cut])).toEqual({ layout: 'lines', records })
  })

  test('keeps line breaks inside of events', () => {
    const events = ['{"a":1}', '{\n  "a": 2\r\n}', '{"b":"x"}']
    const body = `{\n"x":{\n},\n"batch": [\n  ${events.join(',\n  ')}\n],\n"sentAt": "\\n"\n}\n`
    for (let cut = 0; cut <= body.length; cut += 1) expect(read(body, [cut])).toEqual({ layout: 'texts', records: events })
  })

  test.each([
    ['', 'the JSON document does not end (byte 0 of the body)'],
    ['[{"a":1}]', 'the body is not a JSON object (byte 0 of the body)'],
    ['{"event":"x"}', 'the object has no batch (byte 13 of the body)'],
    ['{}', 'the object has no batch (byte 2 of the body)'],
    ['{"batch":{"a":1}}', 'batch is not an array (byte 9 of the body)'],
    ['{"batch":[1],"batch":[2]}', 'the object has a second batch (byte 21 of the body)'],
    ['{"batch":[1]', 'the JSON document does not end (byte 12 of the body)'],
    ['{"batch":[1', 'the JSON document does not end (byte 11 of the body)'],
    ['{"batch":[1],}', 'expected name (byte 13 of the body)'],
    ['{"batch" [1]}', 'expected colon (byte 9 of the body)'],
    ['{"batch":[1]"a":1}', 'expected comma or end (byte 12 of the body)'],
    ['{"a":,"batch":[1]}', 'expected value (byte 5 of the body)'],
    ['{"batch":[1]}{}', 'more follows after the object (byte 13 of the body)'],
    ['{batch:[1]}', 'expected name or end (byte 1 of the body)'],
    ['{"batch":[1,"\u001e"]}', 'JSON does not allow the control character 1e (byte 13 of the body)'],
  ])('%j is refused', (body, refused) => {
    expect(read(body)).toEqual({ code: 'validation_error', refused })
  })

  test('may be larger than a record, and names the event that is too large', () => {
    const event = `"${'x'.repeat(MiB - 2)}"`
    expect(read(`{"batch":[${event},${event}],"s":${event}}`)).toMatchObject({ records: { length: 2 } })
    const refused = expect.stringMatching(/^element 2 of the array is longer/)
    expect(read(`{"batch":[1,"x${event.slice(1)},2]}`)).toMatchObject({ code: 'payload_too_large', refused })
  })
})

const member = fc.tuple(fc.string(), anyJson).filter(([name]) => name !== 'batch')

test('the events are those that a JSON parser finds, byte for byte, wherever its chunks are cut', () => {
  fc.assert(
    fc.property(fc.array(member), fc.array(member), fc.array(anyJson), anySpace, anyCuts, (before, after, events, gap, at) => {
      const batch = `"batch"${gap}:${gap}[${events.map((event) => `${gap}${event}${gap}`).join(',')}]`
      const print = ([name, some]: readonly [string, string]) => `${JSON.stringify(name)}${gap}:${gap}${some}`
      const members = [...before.map(print), batch, ...after.map(print)]
      const body = `${gap}{${gap}${members.join(`${gap},${gap}`)}${gap}}${gap}`
      expect(read(body, at)).toMatchObject({ records: events })
      expect(events.map((event) => JSON.parse(event))).toEqual(JSON.parse(body).batch)
    }),
    { numRuns: runs(300, 5_000) },
  )
})
