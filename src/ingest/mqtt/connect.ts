/**
 * Decides on CONNECT.
 *
 * Owns: who comes in, to which endpoint, and on what terms. Does not own: the connection.
 * Law: nothing of a client that is not let in is kept.
 */
import { randomUUID } from 'node:crypto'
import { AppError } from '#errors.ts'
import type { Principal } from '#model/api-key.ts'
import { mqttLimits } from '#model/limits.ts'
import type { EndpointTable } from '../endpoint-table.ts'
import { checkText, type IConnectPacket, type Peer, peerOf } from './control-packet.ts'
import type { Message } from './in-flight.ts'
import { checkTopic } from './publish.ts'
import { Refusal } from './reason.ts'

export type Door = {
  /** Throws AppError unauthorized. */
  readonly verifyKey: (secret: string) => Principal
  /** Undefined until the first snapshot. */
  readonly endpoints: () => EndpointTable | undefined
  /** Why nothing is taken in now. */
  readonly closedBecause: () => string | undefined
  /** Connections of an endpoint, but for the one with this client id, which would be taken over. */
  readonly connections: (endpointId: string, butClientId: string) => number
}

/** What the network says of where a client wants to go. */
export type Route = { readonly host: string | undefined; readonly query: string }

/** The terms of a connection. */
export type Terms = {
  readonly peer: Peer
  readonly endpointId: string
  readonly clientId: string
  /** Where the client left its id to us. */
  readonly assignedClientId: string | undefined
  readonly username: string
  readonly qosMax: 0 | 1
  /** Without a packet for one and a half times as long, the connection ends. */
  readonly keepAliveSeconds: number
  /** Where that is not what the client asked for. */
  readonly serverKeepAlive: number | undefined
  /** A client that asked for a session that outlives the connection is told that it has none. */
  readonly sessionExpiryInterval: number | undefined
  readonly will: Message | undefined
}

/** Throws Refusal. */
export function decide(packet: IConnectPacket, route: Route, door: Door): Terms {
  const peer = peerOf(packet)
  const { version } = peer
  if (packet.protocolVersion !== version || packet.protocolId !== 'MQTT') {
    throw new Refusal('unsupported_protocol_version', 'this is a server of MQTT 3.1.1 and 5')
  }
  if (version === 4 && packet.username === undefined && packet.password !== undefined) {
    throw new Refusal('malformed_packet', 'a password without a user name') // [MQTT-3.1.2-22] of 3.1.1
  }
  if (packet.properties?.receiveMaximum === 0 || packet.properties?.maximumPacketSize === 0) {
    throw new Refusal('protocol_error', 'receive maximum and maximum packet size are not 0') // §3.1.2.11.3, §3.1.2.11.4
  }
  if (packet.properties?.authenticationMethod !== undefined) {
    throw new Refusal('bad_authentication_method', 'send the API key as the password; there is no other authentication')
  }
  const closed = door.closedBecause()
  const table = door.endpoints()
  if (closed !== undefined) throw new Refusal('server_busy', closed)
  if (table === undefined) throw new Refusal('server_unavailable', 'this node has not heard of its endpoints yet')
  const endpoint = refuseWith(() => {
    const principal = door.verifyKey(packet.password?.toString('utf8') ?? '')
    if (!principal.scopes.includes('ingest')) {
      throw new AppError('forbidden', 'the key lacks the scope ingest; use one that has it')
    }
    return table.resolve(principal, route.host, queryOf(packet, route))
  })
  const settings = endpoint.mqtt_config
  if (settings === null || !settings.enabled) {
    throw new Refusal('not_authorized', 'MQTT is disabled on this endpoint; set its mqtt_config to enable it')
  }
  const { clientId, assignedClientId } = clientIdOf(packet, peer)
  const username = checkText('user name', packet.username ?? '')
  if (Buffer.byteLength(username) > mqttLimits.usernameBytesMax) {
    throw new Refusal('bad_credentials', `the user name is longer than ${mqttLimits.usernameBytesMax} bytes`)
  }
  if (door.connections(endpoint.id, clientId) >= settings.max_connections) {
    throw new Refusal('quota_exceeded', `the endpoint has its ${settings.max_connections} connections; see max_connections`)
  }
  const qosMax = settings.qos_max === 0 ? 0 : 1
  const asked = packet.keepalive ?? 0
  const keepAliveSeconds = asked === 0 ? settings.keepalive_max_s : Math.min(asked, settings.keepalive_max_s)
  return {
    peer,
    endpointId: endpoint.id,
    clientId,
    assignedClientId,
    username,
    qosMax,
    keepAliveSeconds,
    serverKeepAlive: keepAliveSeconds === asked ? undefined : keepAliveSeconds,
    sessionExpiryInterval: (packet.properties?.sessionExpiryInterval ?? 0) > 0 ? 0 : undefined,
    will: willOf(packet, qosMax),
  }
}

function clientIdOf(packet: IConnectPacket, { version }: Peer) {
  const asked = checkText('client id', packet.clientId)
  if (Buffer.byteLength(asked) > mqttLimits.clientIdBytesMax) {
    throw new Refusal('client_id_not_valid', `the client id is longer than ${mqttLimits.clientIdBytesMax} bytes`)
  }
  if (asked !== '') return { clientId: asked, assignedClientId: undefined }
  if (version === 4 && packet.clean !== true) {
    throw new Refusal('client_id_not_valid', 'a client without an id needs a clean session') // [MQTT-3.1.3-8] of 3.1.1
  }
  const assigned = `auto-${randomUUID()}`
  return { clientId: assigned, assignedClientId: assigned }
}

function willOf({ will }: IConnectPacket, qosMax: 0 | 1): Message | undefined {
  if (will === undefined) return undefined
  if (will.qos === (3 as number)) throw new Refusal('malformed_packet', 'both QoS bits of the will are set') // [MQTT-3.1.2-12]
  // [MQTT-3.2.2-12]
  if ((will.qos ?? 0) > qosMax) throw new Refusal('qos_not_supported', `the will has a QoS above ${qosMax}`)
  checkTopic(checkText('topic of the will', will.topic), Buffer.byteLength(will.topic))
  const contentType = will.properties?.contentType
  const userProperties = Object.entries(will.properties?.userProperties ?? {}).flatMap(([name, values]) =>
    [values].flat().map((value) => [name, value] as const),
  )
  const payload = Buffer.from(will.payload)
  const propertyBytes = Buffer.byteLength([contentType ?? '', ...userProperties.flat()].join(''))
  if (payload.length + propertyBytes > mqttLimits.willBytesMax) {
    throw new Refusal('packet_too_large', `the will and its properties are longer than ${mqttLimits.willBytesMax} bytes`)
  }
  const none = contentType === undefined && userProperties.length === 0
  return { topic: will.topic, properties: none ? undefined : { contentType, userProperties }, payload }
}

/** A client that can't name its endpoint by host or query may in MQTT 5 with the user property `endpoint`. */
function queryOf({ properties }: IConnectPacket, { query }: Route): string {
  const named = properties?.userProperties?.['endpoint']
  if (query !== '' || named === undefined) return query
  return [named]
    .flat()
    .map((id) => `endpoint=${encodeURIComponent(id)}`)
    .join('&')
}

function refuseWith<T>(work: () => T): T {
  try {
    return work()
  } catch (error) {
    if (!(error instanceof AppError)) throw error
    switch (error.code) {
      case 'unauthorized':
        throw new Refusal('bad_credentials', 'the password is no valid API key')
      case 'unavailable':
        throw new Refusal('server_unavailable', error.message)
      default:
        throw new Refusal('not_authorized', error.message)
    }
  }
}
