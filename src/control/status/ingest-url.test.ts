import { expect, test } from 'vitest'
import { newId } from '#model/id.ts'
import { ingestUrl } from './ingest-url.ts'

const id = newId()
const plain = { isName: false, baseUrl: 'http://127.0.0.1:8080' }
const named = { isName: true, baseUrl: 'http://control.example.com' }
const name = { id, ingest_host: 'k3v9x2m7q1za.fra.example.com' }

test.each([
  ['the address of a node', { id, ingest_host: '127.0.0.1:8081' }, [{ tls_ports: [] }], plain, 'http://127.0.0.1:8081'],
  ['its TLS port', { id, ingest_host: '[::1]:8443' }, [{ tls_ports: [8443] }], plain, 'https://[::1]:8443'],
  ['a port beside TLS', { id, ingest_host: '127.0.0.1:8081' }, [{ tls_ports: [8883] }], plain, 'http://127.0.0.1:8081'],
  ['a name', name, [{ tls_ports: [] }], named, 'http://k3v9x2m7q1za.fra.example.com'],
  ['a name of nodes with TLS', name, [{ tls_ports: [443] }], named, 'https://k3v9x2m7q1za.fra.example.com'],
  [
    'a name where control has TLS',
    name,
    [],
    { ...named, baseUrl: 'https://control.example.com' },
    'https://k3v9x2m7q1za.fra.example.com',
  ],
])('clients send to %s', (_name, endpoint, nodes, options, origin) => {
  expect(ingestUrl(endpoint, nodes, options)).toBe(`${origin}/v1/ingest?endpoint=${id}`)
})
