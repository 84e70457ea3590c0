import { Buffer } from 'node:buffer'
import { Socket } from 'node:net'
import type { IConnectPacket } from 'mqtt-packet'
import { describe, expect, test } from 'vitest'
import { AppError } from '#errors.ts'
import { assert } from '#lib/assert.ts'
import { system } from '#lib/system.ts'
import type { KeyPrincipal } from '#model/principal.ts'
import { effectiveQuotas } from '#model/quota.ts'
import type { SnapshotEndpoint } from '#model/snapshot.ts'
import { aGate, manyConnections } from '../../../test/support/gate.ts'
import { MqttError, type Reason } from './packets/reason.ts'
import { agreeTerms, type ConnectContext } from './session-terms.ts'

const endpoint: SnapshotEndpoint = {
  id: 'b0000000-0000-4000-8000-000000000001',
  account_id: 'account',
  ingest_host: '127.0.0.1:8081',
  account_suspended: false,
  account_weight: 1,
  account_quotas: effectiveQuotas({}),
  desired_state: 'active',
  segment_bytes: 1,
  segment_max_age_seconds: 1,
  output_formats: [],
  kept_headers: [],
  kept_fields: [],
  mqtt_config: { enabled: true, max_connections: 2, keepalive_max_s: 100, qos_max: 1 },
  destination: null,
  views: [],
  committed_seq: -1,
}
const principal = { account_id: 'account', key_id: 'key', scopes: ['ingest'], endpoint_ids: null } as unknown as KeyPrincipal

const verifyKey = (secret: string) => {
  if (secret !== 'good') throw new AppError('unauthorized', 'no')
  return principal
}
const context = (change: Partial<ConnectContext> = {}): ConnectContext => ({
  gate: aGate({ endpoints: [endpoint], verifyKey }),
  refusalReason: () => undefined,
  countConnections: () => 0,
  isConnected: () => false,
  ...system,
  ...change,
})
const slot = manyConnections().accept(new Socket())
assert(slot !== undefined, 'the budget has a place')
const agree = (asked: IConnectPacket, query: string, to: ConnectContext) =>
  agreeTerms(asked, { route: { host: undefined, query }, slot, remote: { address: undefined } }, to).terms
const packet = (change: Partial<IConnectPacket> = {}): IConnectPacket => ({
  cmd: 'connect',
  protocolId: 'MQTT',
  protocolVersion: 5,
  clean: true,
  clientId: 'c',
  keepalive: 50,
  password: Buffer.from('good'),
  ...change,
})

function reasonOf(work: () => unknown): Reason {
  try {
    work()
  } catch (error) {
    if (error instanceof MqttError) return error.reason
    throw error
  }
  throw new Error('the client was not refused')
}

describe('session terms', () => {
  test('are what the client requested, if that is allowed', () => {
    expect(agree(packet(), '', context())).toEqual({
      peer: { version: 5, packetBytesMax: Number.POSITIVE_INFINITY, wantsReasons: true },
      endpointId: endpoint.id,
      clientId: 'c',
      assignedClientId: undefined,
      username: '',
      qosMax: 1,
      keepAliveSeconds: 50,
      serverKeepAlive: undefined,
      sessionExpiryInterval: undefined,
      will: undefined,
    })
  })
  test.each([
    [0, 100, 100],
    [100, 100, undefined],
    [101, 100, 100],
    [65_535, 100, 100],
    [1, 1, undefined],
  ])('keep alive %i becomes %i', (keepalive, kept, announced) => {
    expect(agree(packet({ keepalive }), '', context())).toMatchObject({
      keepAliveSeconds: kept,
      serverKeepAlive: announced,
    })
  })
  test('do not count the connection that would be taken over', () => {
    const calls: unknown[] = []
    const countConnections = (...args: unknown[]) => {
      calls.push(args)
      return 1
    }
    agree(packet(), '', context({ countConnections }))
    expect(calls).toEqual([[endpoint.id, 'c']])
  })
})

describe('a refusal', () => {
  test('has the first reason that the client can act on', () => {
    const busy = context({ refusalReason: () => 'full', gate: aGate() })
    expect(reasonOf(() => agree(packet({ protocolVersion: 3 }), '', busy))).toBe('unsupported_protocol_version')
    expect(reasonOf(() => agree(packet({ password: Buffer.from('bad') }), '', busy))).toBe('server_busy')
    expect(reasonOf(() => agree(packet({ password: Buffer.from('bad') }), '', context()))).toBe('bad_credentials')
    const full = context({ countConnections: () => 2 })
    expect(reasonOf(() => agree(packet({ clientId: 'x'.repeat(513) }), '', full))).toBe('client_id_not_valid')
    expect(reasonOf(() => agree(packet(), '', full))).toBe('quota_exceeded')
  })
  test('for a password without a user name in 3.1.1 [MQTT-3.1.2-22]', () => {
    const asked = packet({ protocolVersion: 4 })
    expect(reasonOf(() => agree(asked, '', context()))).toBe('malformed_packet')
    expect(agree({ ...asked, username: '' }, '', context()).peer.version).toBe(4)
  })
  test('for a will and its properties together above 8 KiB', () => {
    const will = (payload: number, property: number) =>
      packet({
        will: {
          topic: 't',
          payload: Buffer.alloc(payload),
          qos: 0,
          retain: false,
          properties: { userProperties: { p: 'x'.repeat(property) } },
        },
      })
    expect(agree(will(4_000, 4_000), '', context()).will?.payload).toHaveLength(4_000)
    expect(reasonOf(() => agree(will(4_000, 4_200), '', context()))).toBe('packet_too_large')
  })
  test('for a will topic with wildcards', () => {
    const will = { topic: 'a/#', payload: Buffer.from(''), qos: 0, retain: false } as const
    expect(reasonOf(() => agree(packet({ will }), '', context()))).toBe('topic_name_invalid')
  })
  test('does not hide an unexpected error', () => {
    const gate = aGate({
      endpoints: [endpoint],
      verifyKey: () => {
        throw new TypeError('a fault of ours')
      },
    })
    expect(() => agree(packet(), '', context({ gate }))).toThrow(TypeError)
  })
})

test('the query wins over the user property; several properties are refused', () => {
  const other = { ...endpoint, id: 'b0000000-0000-4000-8000-000000000002' }
  const gate = aGate({ endpoints: [endpoint, other], verifyKey })
  const named = (...ids: string[]) => packet({ properties: { userProperties: { endpoint: ids } } })
  expect(agree(named(other.id), '', context({ gate })).endpointId).toBe(other.id)
  const query = `endpoint=${endpoint.id}`
  expect(agree(named(other.id), query, context({ gate })).endpointId).toBe(endpoint.id)
  expect(reasonOf(() => agree(named(other.id, other.id), '', context({ gate })))).toBe('not_authorized')
  expect(reasonOf(() => agree(named('&x=1'), '', context({ gate })))).toBe('not_authorized')
})
