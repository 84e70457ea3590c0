import { expect, test } from 'vitest'
import { decodeEnvelope } from '#model/record-envelope.ts'
import { MessageEnvelopes } from './message-envelopes.ts'

const plant = { protocol: 'mqtt', topic: 'plant/1', client_id: 'sensor' }

test('messages without properties share the bytes of one envelope while the topic is the same', () => {
  const envelopes = new MessageEnvelopes('sensor')
  const first = envelopes.encode('plant/1', undefined, undefined)
  expect(decodeEnvelope(first)).toEqual(plant)
  expect(envelopes.encode('plant/1', { contentType: 'text/plain', userProperties: [] }, undefined)).not.toBe(first)
  expect(envelopes.encode('plant/1', undefined, undefined)).toBe(first)
  expect(decodeEnvelope(envelopes.encode('plant/2', undefined, undefined))).toEqual({ ...plant, topic: 'plant/2' })
  expect(decodeEnvelope(envelopes.encode('plant/1', undefined, undefined))).toEqual(plant)
})

test('properties are in the envelope of their own message only', () => {
  const envelopes = new MessageEnvelopes('sensor')
  const properties = { contentType: '', userProperties: [['site', 'north'] as const] }
  expect(decodeEnvelope(envelopes.encode('plant/1', properties, undefined))).toEqual({
    ...plant,
    content_type: '',
    user_properties: { site: 'north' },
  })
  expect(decodeEnvelope(envelopes.encode('plant/1', undefined, undefined))).toEqual(plant)
})

test('what is kept of the client is in each envelope, from the message on that follows a change', () => {
  const envelopes = new MessageEnvelopes('sensor')
  const sender = { address: '192.0.2.0', key_name: 'plant' }
  const first = envelopes.encode('plant/1', undefined, sender)
  expect(decodeEnvelope(first)).toEqual({ ...plant, ...sender })
  expect(envelopes.encode('plant/1', undefined, sender)).toBe(first)
  const properties = { contentType: '', userProperties: [['address', 'x'] as const] }
  expect(decodeEnvelope(envelopes.encode('plant/1', properties, sender))).toEqual({
    ...{ ...plant, ...sender, content_type: '', user_properties: { address: 'x' } },
  })
  expect(decodeEnvelope(envelopes.encode('plant/1', undefined, undefined))).toEqual(plant)
})
