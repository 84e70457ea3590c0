import { expect, test } from 'vitest'
import { decodeEnvelope } from '#model/record-envelope.ts'
import { MessageEnvelopes } from './message-envelopes.ts'

const plant = { protocol: 'mqtt', topic: 'plant/1', client_id: 'sensor' }

test('messages without properties share the bytes of one envelope while the topic is the same', () => {
  const envelopes = new MessageEnvelopes('sensor')
  const first = envelopes.encode('plant/1', undefined)
  expect(decodeEnvelope(first)).toEqual(plant)
  expect(envelopes.encode('plant/1', { contentType: 'text/plain', userProperties: [] })).not.toBe(first)
  expect(envelopes.encode('plant/1', undefined)).toBe(first)
  expect(decodeEnvelope(envelopes.encode('plant/2', undefined))).toEqual({ ...plant, topic: 'plant/2' })
  expect(decodeEnvelope(envelopes.encode('plant/1', undefined))).toEqual(plant)
})

test('properties are in the envelope of their own message only', () => {
  const envelopes = new MessageEnvelopes('sensor')
  const properties = { contentType: '', userProperties: [['site', 'north'] as const] }
  expect(decodeEnvelope(envelopes.encode('plant/1', properties))).toEqual({
    ...plant,
    content_type: '',
    user_properties: { site: 'north' },
  })
  expect(decodeEnvelope(envelopes.encode('plant/1', undefined))).toEqual(plant)
})
