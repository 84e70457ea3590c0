/** The servers that mqtt.ts compares, except mosquitto, each in its own process: `node mqtt-servers.ts floor|inlet DIRECTORY TCP-PORT`. */
import { closeSync, fdatasync, ftruncateSync, openSync, write } from 'node:fs'
import { createServer as createHttpServer } from 'node:http'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import { generate, type IPublishPacket, parser } from 'mqtt-packet'
import { WebSocketServer } from 'ws'
import { type Running, startInlet } from './inlet-node.ts'
import { answerQuestions } from './rig.ts'

type Send = (bytes: Buffer) => void

/** The minimum for a durable PUBACK with mqtt-packet: parse, one write and one fdatasync for all waiting messages, respond. */
async function startFloor(directory: string, port: number): Promise<Running> {
  const file = openSync(join(directory, 'floor'), 'w')
  let position = 0
  let payloads: Buffer[] = []
  let acks = new Map<Send, number[]>()
  let writing = false

  const flush = () => {
    if (payloads.length === 0) {
      writing = false
      return
    }
    const [group, waiting] = [Buffer.concat(payloads), acks]
    payloads = []
    acks = new Map()
    write(file, group, 0, group.length, position, (writeError, written) => {
      if (writeError !== null) throw writeError
      position += written
      fdatasync(file, (syncError) => {
        if (syncError !== null) throw syncError
        for (const [send, ids] of waiting) {
          const answers = Buffer.allocUnsafe(ids.length * 4)
          for (const [index, id] of ids.entries()) {
            answers.writeUInt16BE(0x4002, index * 4)
            answers.writeUInt16BE(id, index * 4 + 2)
          }
          send(answers)
        }
        flush()
      })
    })
  }
  const onPublish = ({ qos, payload, messageId = 0 }: IPublishPacket, send: Send) => {
    payloads.push(payload as Buffer)
    if (qos > 0) {
      const ids = acks.get(send)
      if (ids === undefined) acks.set(send, [messageId])
      else ids.push(messageId)
    }
    if (!writing) setImmediate(flush)
    writing = true
  }
  const session = (send: Send) => {
    const reader = parser({ protocolVersion: 4 })
    reader.on('packet', (packet) => {
      if (packet.cmd === 'publish') onPublish(packet, send)
      else if (packet.cmd === 'connect') send(generate({ cmd: 'connack', returnCode: 0, sessionPresent: false }))
    })
    return reader
  }

  const tcp = createServer({ noDelay: true }, (socket: Socket) => {
    const reader = session((bytes) => socket.write(bytes))
    socket.on('data', (chunk: Buffer) => reader.parse(chunk))
    socket.on('error', () => socket.destroy())
  })
  const http = createHttpServer()
  const upgrades = new WebSocketServer({ server: http, perMessageDeflate: false, handleProtocols: () => 'mqtt' })
  upgrades.on('connection', (webSocket) => {
    const reader = session((bytes) => webSocket.send(bytes))
    webSocket.on('message', (chunk) => reader.parse(chunk as Buffer))
    webSocket.on('error', () => undefined)
  })
  await new Promise<void>((resolve) => tcp.listen({ host: '127.0.0.1', port, backlog: 4096 }, resolve))
  await new Promise<void>((resolve) => http.listen({ host: '127.0.0.1', port: 0, backlog: 4096 }, resolve))
  return {
    url: `http://127.0.0.1:${(http.address() as AddressInfo).port}`,
    clean: async () => {
      ftruncateSync(file)
      position = 0
    },
    stop: async () => {
      closeSync(file)
      process.exit(0)
    },
  }
}

if (import.meta.main) {
  const [kind, directory = '', port] = process.argv.slice(2)
  const mqttPort = Number(port)
  const running = await (kind === 'floor' ? startFloor(directory, mqttPort) : startInlet(directory, { mqttPort }))
  answerQuestions(running)
}
