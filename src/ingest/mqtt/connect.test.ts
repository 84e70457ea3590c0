import { Buffer } from 'node:buffer'
import type { IConnectPacket } from 'mqtt-packet'
import { describe, expect, test } from 'vitest'
import { AppError } from '#errors.ts'
import type { Principal } from '#model/api-key.ts'
import type { SnapshotEndpoint } from '#model/snapshot.ts'
import { EndpointTable } from '../endpoint-table.ts'
import { type Door, decide } from './connect.ts'
import { type Reason, Refusal } from './reason.ts'

const endpoint: SnapshotEndpoint = {
  id: 'b0000000-0000-4000-8000-000000000001',
  account_id: 'account',
  ingest_host: '127.0.0.1:8081',
  desired_state: 'active',
  segment_bytes: 1,
  segment_max_age_seconds: 1,
  output_formats: [],
  mqtt_config: { enabled: true, max_connections: 2, keepalive_max_s: 100, qos_max: 1 },
  destination: null,
  views: [],
  committed_seq: -1,
}
const principal = { account_id: 'account', key_id: 'key', scopes: ['ingest'] } as unknown as Principal

const door = (change: Partial<Door> = {}): Door => ({
  verifyKey: (secret) => {
    if (secret !== 'good') throw new AppError('unauthorized', 'no')
    return principal
  },
  endpoints: () => new EndpointTable({ region: 'loc', endpoints: [endpoint] }),
  closedBecause: () => undefined,
  connections: () => 0,
  ...change,
})
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
const route = { host: undefined, query: '' }

function reasonOf(work: () => unknown): Reason {
  try {
    work()
  } catch (error) {
    if (error instanceof Refusal) return error.reason
    throw error
  }
  throw new Error('it was not refused')
}

describe('the terms', () => {
  test('say what was asked for, where that is allowed', () => {
    expect(decide(packet(), route, door())).toEqual({
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
  ])('keep alive %i becomes %i', (keepalive, kept, told) => {
    expect(decide(packet({ keepalive }), route, door())).toMatchObject({ keepAliveSeconds: kept, serverKeepAlive: told })
  })
  test('the connection that would be taken over doesn’t count', () => {
    const asked: unknown[] = []
    const connections = (...args: unknown[]) => {
      asked.push(args)
      return 1
    }
    decide(packet(), route, door({ connections }))
    expect(asked).toEqual([[endpoint.id, 'c']])
  })
})

describe('what is refused', () => {
  test('of several reasons, the first that the client can do something about', () => {
    const busy = door({ closedBecause: () => 'full', endpoints: () => undefined })
    expect(reasonOf(() => decide(packet({ protocolVersion: 3 }), route, busy))).toBe('unsupported_protocol_version')
    expect(reasonOf(() => decide(packet({ password: Buffer.from('bad') }), route, busy))).toBe('server_busy')
    expect(reasonOf(() => decide(packet({ password: Buffer.from('bad') }), route, door()))).toBe('bad_credentials')
    const full = door({ connections: () => 2 })
    expect(reasonOf(() => decide(packet({ clientId: 'x'.repeat(513) }), route, full))).toBe('client_id_not_valid')
    expect(reasonOf(() => decide(packet(), route, full))).toBe('quota_exceeded')
  })
  test('a password without a user name in 3.1.1 [MQTT-3.1.2-22]', () => {
    const asked = packet({ protocolVersion: 4 })
    expect(reasonOf(() => decide(asked, route, door()))).toBe('malformed_packet')
    expect(decide({ ...asked, username: '' }, route, door()).peer.version).toBe(4)
  })
  test('a will and its properties together beyond 8 KiB', () => {
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
    expect(decide(will(4_000, 4_000), route, door()).will?.payload).toHaveLength(4_000)
    expect(reasonOf(() => decide(will(4_000, 4_200), route, door()))).toBe('packet_too_large')
  })
  test('a topic of a will with wildcards', () => {
    const will = { topic: 'a/#', payload: Buffer.from(''), qos: 0, retain: false } as const
    expect(reasonOf(() => decide(packet({ will }), route, door()))).toBe('topic_name_invalid')
  })
  test('what our own code throws is no refusal', () => {
    const verifyKey = () => {
      throw new TypeError('a fault of ours')
    }
    expect(() => decide(packet(), route, door({ verifyKey }))).toThrow(TypeError)
  })
})

test('the query counts before the user property; several properties are refused', () => {
  const other = { ...endpoint, id: 'b0000000-0000-4000-8000-000000000002' }
  const endpoints = () => new EndpointTable({ region: 'loc', endpoints: [endpoint, other] })
  const named = (...ids: string[]) => packet({ properties: { userProperties: { endpoint: ids } } })
  expect(decide(named(other.id), route, door({ endpoints })).endpointId).toBe(other.id)
  const query = `endpoint=${endpoint.id}`
  expect(decide(named(other.id), { ...route, query }, door({ endpoints })).endpointId).toBe(endpoint.id)
  expect(reasonOf(() => decide(named(other.id, other.id), route, door({ endpoints })))).toBe('not_authorized')
  expect(reasonOf(() => decide(named('&x=1'), route, door({ endpoints })))).toBe('not_authorized')
})
