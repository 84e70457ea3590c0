import { once } from 'node:events'
import type { RequestListener, Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, describe, expect, test } from 'vitest'
import { type HttpRequest, http, sendRequest } from './http.ts'

let server: Server | undefined
afterEach(() => {
  server?.closeAllConnections()
  server?.close()
})

async function serve(listener: RequestListener): Promise<string> {
  server = http.createServer(listener).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/path`
}

const get: HttpRequest = { method: 'GET', headers: {}, signal: new AbortController().signal }

describe('sendRequest', () => {
  test('sends a body with its length, and returns status and body of any response', async () => {
    const url = await serve(async (request, response) => {
      const chunks = await request.toArray()
      const { 'content-length': length, 'x-name': name } = request.headers
      response.writeHead(418).end(`${request.method} ${request.url} ${name} ${length} ${chunks.join('')}`)
    })
    const { status, body } = await sendRequest(url, { ...get, method: 'POST', headers: { 'x-name': 'n' }, body: '{"é":1}' })
    expect([status, body.toString()]).toEqual([418, 'POST /path n 8 {"é":1}'])
  })

  test('rejects if the response is cut off', async () => {
    const url = await serve((_request, response) => {
      response.writeHead(200, { 'content-length': 100 })
      response.write('half', () => response.destroy())
    })
    await expect(sendRequest(url, get)).rejects.toThrow()
  })

  test('rejects if the response is too long, without its end', async () => {
    const url = await serve((_request, response) => void response.write('123456'))
    await expect(sendRequest(url, { ...get, responseBytesMax: 5 })).rejects.toThrow('the response has more than 5 bytes')
  })

  test('rejects if nothing listens', async () => {
    const url = await serve(() => undefined)
    server?.close()
    await expect(sendRequest(url, get)).rejects.toMatchObject({ code: 'ECONNREFUSED' })
  })

  test.each(['before the response', 'during the response'])('an abort ends it %s', async (when) => {
    const abort = new AbortController()
    const url = await serve((_request, response) => {
      if (when === 'during the response') response.write('half')
      setImmediate(() => abort.abort())
    })
    await expect(sendRequest(url, { ...get, signal: abort.signal })).rejects.toThrow()
  })
})
