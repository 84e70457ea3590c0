/** The two servers that http-ingest.ts compares, each in its own process: `node http-ingest-servers.ts floor|inlet DIRECTORY`. */
import { closeSync, fdatasync, ftruncateSync, openSync, writev } from 'node:fs'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { type Running, startInlet } from './inlet-node.ts'
import { answerQuestions } from './rig.ts'

/** The minimum for a durable response over HTTP: read the body, one writev and one fdatasync for all waiting requests, 202. */
async function startFloor(directory: string): Promise<Running> {
  const file = openSync(join(directory, 'floor'), 'w')
  let position = 0
  let waiting: { chunks: Buffer[]; response: ServerResponse }[] = []
  let writing = false

  const flush = () => {
    if (waiting.length === 0) {
      writing = false
      return
    }
    writing = true
    const group = waiting
    waiting = []
    const chunks = group.flatMap((entry) => entry.chunks)
    writev(file, chunks, position, (writeError, written) => {
      if (writeError !== null) throw writeError
      position += written
      fdatasync(file, (syncError) => {
        if (syncError !== null) throw syncError
        for (const { response } of group) response.writeHead(202).end('{"accepted":true}')
        flush()
      })
    })
  }

  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      waiting.push({ chunks, response })
      if (!writing) setImmediate(flush)
      writing = true
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    clean: async () => {
      ftruncateSync(file)
      position = 0
    },
    stop: async () => {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
      closeSync(file)
    },
  }
}

if (import.meta.main) {
  const [kind, directory = ''] = process.argv.slice(2)
  const running = await (kind === 'floor' ? startFloor(directory) : startInlet(directory))
  answerQuestions(running)
}
