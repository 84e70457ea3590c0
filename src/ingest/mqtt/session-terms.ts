/**
 * The terms of a session, agreed from a CONNECT packet.
 *
 * Owns: credentials, endpoint, and what a client may do. Does not own: the connection, the encoding of CONNACK.
 * Law: no state is kept for a client that is refused.
 */
import { type Random, randomUuid } from '#lib/random.ts'
import { mqttLimits } from '#model/limits.ts'
import type { Admitted } from '../gate/admitted.ts'
import type { Remote } from '../gate/client-addresses.ts'
import type { ConnectionSlot } from '../gate/connection-budget.ts'
import type { Route } from '../gate/endpoint-table.ts'
import type { Gate } from '../gate/gate.ts'
import { Rejection } from '../gate/rejection.ts'
import { checkText, type IConnectPacket, type Peer, peerOf } from './packets/control-packet.ts'
import { checkTopic, type Message } from './packets/publish.ts'
import { MqttError, toMqttError } from './packets/reason.ts'

export type ConnectContext = {
  readonly gate: Pick<Gate, 'admit'>
  /** Returns why no client may connect now; undefined if clients may. */
  readonly refusalReason: () => string | undefined
  /** Returns the number of connections of an endpoint, without the one that this client id would take over. */
  readonly countConnections: (endpointId: string, exceptClientId: string) => number
  /** Whether there is a connection that this client id would take over. */
  readonly isConnected: (endpointId: string, clientId: string) => boolean
  readonly random: Random
}

export type SessionTerms = {
  readonly peer: Peer
  readonly endpointId: string
  readonly clientId: string
  /** Set if the client left its id to the server. */
  readonly assignedClientId: string | undefined
  readonly username: string
  readonly qosMax: 0 | 1
  /** The connection ends after one and a half times this long without a packet. */
  readonly keepAliveSeconds: number
  /** Set if it differs from the client's request. */
  readonly serverKeepAlive: number | undefined
  /** 0 if the client requested a session that outlives its connection; undefined otherwise. */
  readonly sessionExpiryInterval: number | undefined
  readonly will: Message | undefined
}

/** How a client reached this node. */
export type Connecting = { readonly route: Route; readonly slot: ConnectionSlot; readonly remote: Remote }

/** Throws MqttError. */
export function agreeTerms(
  packet: IConnectPacket,
  connecting: Connecting,
  context: ConnectContext,
): { readonly terms: SessionTerms; readonly admitted: Admitted } {
  const peer = peerOf(packet)
  checkProtocol(packet, peer)
  const refusalReason = context.refusalReason()
  if (refusalReason !== undefined) throw new MqttError('server_busy', refusalReason)
  const admitted = admit(packet, connecting, context)
  const { endpoint } = admitted
  const settings = endpoint.mqtt_config
  if (settings === null || !settings.enabled) {
    throw new MqttError('not_authorized', 'MQTT is disabled on this endpoint; set its mqtt_config to enable it')
  }
  const noRoom = admitted.backpressureReason()
  if (noRoom !== undefined) throw new MqttError('server_busy', `${noRoom}; connect again later`)
  const { clientId, assignedClientId } = clientIdOf(packet, peer, context.random)
  const username = checkText('user name', packet.username ?? '')
  if (Buffer.byteLength(username) > mqttLimits.usernameBytesMax) {
    throw new MqttError('bad_credentials', `the user name is longer than ${mqttLimits.usernameBytesMax} bytes`)
  }
  if (context.countConnections(endpoint.id, clientId) >= settings.max_connections) {
    const detail = `the endpoint already has ${settings.max_connections} connections; raise max_connections or close some`
    throw new MqttError('quota_exceeded', detail)
  }
  const qosMax = settings.qos_max === 0 ? 0 : 1
  const requested = packet.keepalive ?? 0
  const keepAliveSeconds = requested === 0 ? settings.keepalive_max_s : Math.min(requested, settings.keepalive_max_s)
  const terms = {
    peer,
    endpointId: endpoint.id,
    clientId,
    assignedClientId,
    username,
    qosMax,
    keepAliveSeconds,
    serverKeepAlive: keepAliveSeconds === requested ? undefined : keepAliveSeconds,
    sessionExpiryInterval: (packet.properties?.sessionExpiryInterval ?? 0) > 0 ? 0 : undefined,
    will: willOf(packet, qosMax),
  } as const
  return { terms, admitted }
}

function checkProtocol(packet: IConnectPacket, { version }: Peer): void {
  if (packet.protocolVersion !== version || packet.protocolId !== 'MQTT') {
    throw new MqttError('unsupported_protocol_version', 'this server supports MQTT 3.1.1 and 5')
  }
  if (version === 4 && packet.username === undefined && packet.password !== undefined) {
    throw new MqttError('malformed_packet', 'a password without a user name') // [MQTT-3.1.2-22] of 3.1.1
  }
  if (packet.properties?.receiveMaximum === 0 || packet.properties?.maximumPacketSize === 0) {
    throw new MqttError('protocol_error', 'receive maximum and maximum packet size must not be 0') // §3.1.2.11.3, §3.1.2.11.4
  }
  if (packet.properties?.authenticationMethod !== undefined) {
    throw new MqttError('bad_authentication_method', 'enhanced authentication is not supported; send the API key as the password')
  }
}

function admit(packet: IConnectPacket, { route, slot, remote }: Connecting, { gate, isConnected }: ConnectContext): Admitted {
  const { host, origin } = route
  try {
    return gate.admit({
      protocol: 'mqtt',
      ...{ host, origin, query: queryOf(packet, route), slot, remote },
      authenticate: (verifier) => verifier.verifyKey(packet.password?.toString('utf8') ?? '', origin),
      replaces: (endpointId) => isConnected(endpointId, packet.clientId),
    })
  } catch (error) {
    if (error instanceof Rejection) throw toMqttError(error)
    throw error
  }
}

/** An MQTT 5 client that cannot name its endpoint by host or query may do so with the user property `endpoint`. */
function queryOf({ properties }: IConnectPacket, { query }: Route): string {
  const named = properties?.userProperties?.['endpoint']
  if (query !== '' || named === undefined) return query
  return [named]
    .flat()
    .map((id) => `endpoint=${encodeURIComponent(id)}`)
    .join('&')
}

function clientIdOf(packet: IConnectPacket, { version }: Peer, random: Random) {
  const requested = checkText('client id', packet.clientId)
  if (Buffer.byteLength(requested) > mqttLimits.clientIdBytesMax) {
    throw new MqttError('client_id_not_valid', `the client id is longer than ${mqttLimits.clientIdBytesMax} bytes`)
  }
  if (requested !== '') return { clientId: requested, assignedClientId: undefined }
  if (version === 4 && packet.clean !== true) {
    throw new MqttError('client_id_not_valid', 'a client without an id needs a clean session') // [MQTT-3.1.3-8] of 3.1.1
  }
  const assigned = `auto-${randomUuid(random)}`
  return { clientId: assigned, assignedClientId: assigned }
}

function willOf({ will }: IConnectPacket, qosMax: 0 | 1): Message | undefined {
  if (will === undefined) return undefined
  if (will.qos === (3 as number)) throw new MqttError('malformed_packet', 'both QoS bits of the will are set') // [MQTT-3.1.2-12]
  // [MQTT-3.2.2-12]
  if ((will.qos ?? 0) > qosMax) throw new MqttError('qos_not_supported', `the will has a QoS above ${qosMax}`)
  checkTopic(checkText('topic of the will', will.topic), Buffer.byteLength(will.topic))
  const contentType = will.properties?.contentType
  const userProperties = Object.entries(will.properties?.userProperties ?? {}).flatMap(([name, values]) =>
    [values].flat().map((value) => [name, value] as const),
  )
  const payload = Buffer.from(will.payload)
  const propertyBytes = Buffer.byteLength([contentType ?? '', ...userProperties.flat()].join(''))
  if (payload.length + propertyBytes > mqttLimits.willBytesMax) {
    throw new MqttError('packet_too_large', `the will and its properties are longer than ${mqttLimits.willBytesMax} bytes`)
  }
  const none = contentType === undefined && userProperties.length === 0
  return { topic: will.topic, properties: none ? undefined : { contentType, userProperties }, payload }
}
