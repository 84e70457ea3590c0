/**
 * A proxy in front of the gateway's STS that checks external ids as AWS does, which the gateway cannot: a role that requires one can
 * be assumed only with it. Everything else is forwarded unchanged, including the signature.
 *
 * `PUT /demands/<role arn>` with an external id as the body makes the role demand it; `DELETE` removes the demand.
 */
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http'
import { text } from 'node:stream/consumers'

export type StsFront = { readonly url: string; stop(): Promise<void> }

const demandsPath = '/demands/'

export async function startStsFront(gatewayUrl: string, address = '127.0.0.1'): Promise<StsFront> {
  const demands = new Map<string, string>()
  const server = createServer((incoming, outgoing) => {
    const work = incoming.url?.startsWith(demandsPath) ? change(demands, incoming, outgoing) : check(demands, incoming, outgoing)
    work.catch((error) => outgoing.destroy(error))
  })
  server.listen(0, address)
  await once(server, 'listening')
  const bound = server.address()
  if (bound === null || typeof bound === 'string') throw new Error('the operating system did not assign a port')

  async function check(demands: ReadonlyMap<string, string>, incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    const body = await text(incoming)
    const query = new URLSearchParams(body)
    const role = query.get('RoleArn') ?? ''
    const demanded = demands.get(role)
    if (query.get('Action') === 'AssumeRole' && demanded !== undefined && query.get('ExternalId') !== demanded) {
      sendAccessDenied(outgoing, `User is not authorized to perform: sts:AssumeRole on resource: ${role}`)
      return
    }
    await pass(gatewayUrl, incoming, body, outgoing)
  }

  return {
    url: `http://${address}:${bound.port}`,
    async stop() {
      server.close()
      server.closeAllConnections()
      await once(server, 'close')
    },
  }
}

async function change(demands: Map<string, string>, incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
  const role = decodeURIComponent((incoming.url ?? '').slice(demandsPath.length))
  const externalId = await text(incoming)
  if (incoming.method === 'PUT') demands.set(role, externalId)
  else demands.delete(role)
  outgoing.writeHead(204).end()
}

/** Forwards the Host header too, because it is signed. */
async function pass(gatewayUrl: string, incoming: IncomingMessage, body: string, outgoing: ServerResponse): Promise<void> {
  const { method, headers, url } = incoming
  const passed = request(`${gatewayUrl}${url}`, { method, headers })
  passed.end(body)
  const [answer] = (await once(passed, 'response')) as [IncomingMessage]
  outgoing.writeHead(answer.statusCode ?? 502, answer.headers)
  answer.pipe(outgoing)
}

function sendAccessDenied(outgoing: ServerResponse, message: string): void {
  outgoing.writeHead(403, { 'content-type': 'text/xml' })
  outgoing.end(`<ErrorResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/">
  <Error>
    <Type>Sender</Type>
    <Code>AccessDenied</Code>
    <Message>${message}</Message>
  </Error>
  <RequestId>${randomUUID()}</RequestId>
</ErrorResponse>
`)
}
