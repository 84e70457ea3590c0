/** Requests that any holder of an API key can send to control, each as large and as awkward as its route allows. */
import { MiB } from '#lib/bytes.ts'
import { definitionLimits, previewLimits } from '#model/limits.ts'

export type HostileRequest = { readonly method: string; readonly path: string; readonly body?: string }

export type Attack = {
  readonly name: string
  /** Sent at once, `round` tells repetitions apart. */
  readonly requests: (round: number) => readonly HostileRequest[]
}

const bodyBytesMax = MiB
const { textCharsMax, conditionCharsMax, columnsMax, filtersMax } = definitionLimits

const column = { name: 'a', type: 'VARCHAR', path: '$.a' }
const samples = ['{"a":"x"}']

/** Repeats a part as often as it fits. */
function fill(start: string, part: string, end: string, charsMax: number): string {
  return start + part.repeat(Math.floor((charsMax - start.length - end.length) / part.length)) + end
}

/** Joins numbered parts as long as they fit. */
function numbered(start: string, part: (index: number) => string, end: string, charsMax: number): string {
  let text = start
  for (let index = 0; text.length + end.length < charsMax - 32; index += 1) text += part(index)
  return text + end
}

const post = (path: string, body: string): HostileRequest => ({ method: 'POST', path, body })
const previewOf = (definition: unknown, format: string) =>
  post('/v1/views/preview', JSON.stringify({ definition, format, samples }))
const times = (count: number, request: (index: number) => HostileRequest) => Array.from({ length: count }, (_, at) => request(at))

const texts: Readonly<Record<string, string>> = {
  'unknown keys': numbered('', (index) => `k${index}:\n`, '', 160_000),
  'unknown keys of a flow map': numbered('{', (index) => `k${index},`, '}', textCharsMax / 2),
  'columns of the wrong shape': fill('columns:\n', '- a\n', '', 160_000),
  'aliases and anchors': numbered('', (index) => `- &a${index} x\n- *a${index}\n`, '', 160_000),
}

/** Compiles, but only after a lot of work. */
const heavyDefinition = {
  columns: Array.from({ length: columnsMax }, (_, index) => ({ ...column, name: `c${index}` })),
  filters: Array.from({ length: filtersMax }, () => ({ condition: fill("c0 = 'x'", ' OR c0 = c1', '', conditionCharsMax) })),
}

export const attacks: readonly Attack[] = [
  ...Object.entries(texts).map(([name, text]) => ({ name: `preview: ${name}`, requests: () => [previewOf(text, 'yaml')] })),
  {
    name: 'preview: unknown keys of JSON',
    requests: () => [
      previewOf(
        numbered('{"a":1', (index) => `,"k${index}":1`, '}', textCharsMax),
        'json',
      ),
    ],
  },
  {
    name: 'preview: 16 MiB of objects as samples',
    requests: () => [post('/v1/views/preview', fill('{"definition":{},"samples":[{}', ',{}', ']}', previewLimits.bodyBytesMax))],
  },
  {
    name: 'preview: 16 MiB of nesting',
    requests: () => [post('/v1/views/preview', fill('{"samples":', '[', '', previewLimits.bodyBytesMax))],
  },
  {
    name: 'preview: 16 MiB of names',
    requests: () => [
      post(
        '/v1/views/preview',
        numbered('{"definition":{"a":1', (index) => `,"k${index}":1`, '}}', previewLimits.bodyBytesMax),
      ),
    ],
  },
  {
    name: 'preview: 16 MiB of results',
    requests: () => [
      post(
        '/v1/views/preview',
        JSON.stringify({
          definition: { columns: [{ name: 'a', type: 'BIGINT[]', path: '$[*]' }] },
          samples: Array.from({ length: 100 }, () => fill('[1', ',1', ']', previewLimits.sampleBytesMax)),
        }),
      ),
    ],
  },
  {
    name: 'suggest: samples with many paths',
    requests: () => [
      post(
        '/v1/views/suggest',
        JSON.stringify({
          samples: Array.from({ length: 100 }, (_, sample) =>
            numbered('{"a":1', (index) => `,"${sample}k${index}":null`, '}', previewLimits.sampleBytesMax),
          ),
        }),
      ),
    ],
  },
  {
    name: 'create: heavy filters, ten times',
    requests: (round) =>
      times(10, (index) => post('/v1/views', JSON.stringify({ name: `heavy_${round}_${index}`, definition: heavyDefinition }))),
  },
  {
    name: 'create: a text with unknown keys',
    requests: () => [post('/v1/views', JSON.stringify({ name: 'text', format: 'yaml', definition: texts['unknown keys'] }))],
  },
  {
    name: 'create: 1 MiB of columns of the wrong shape',
    requests: () => [post('/v1/views', fill('{"name":"a","definition":{"columns":[{}', ',{}', ']}}', bodyBytesMax))],
  },
  {
    name: 'create: 1 MiB of unknown fields',
    requests: () => [
      post(
        '/v1/views',
        numbered('{"name":"a"', (index) => `,"k${index}":1`, '}', bodyBytesMax),
      ),
    ],
  },
  {
    name: 'endpoint: 1 MiB of unknown fields',
    requests: () => [
      post(
        '/v1/endpoints',
        numbered('{"region":"loc"', (index) => `,"k${index}":1`, '}', bodyBytesMax),
      ),
    ],
  },
  {
    name: 'endpoint: 1 MiB of formats',
    requests: () => [post('/v1/endpoints', fill('{"region":"loc","output_formats":[1', ',1', ']}', bodyBytesMax))],
  },
  {
    name: 'endpoint: 1 MiB of nesting',
    requests: () => [post('/v1/endpoints', `{"region":${'['.repeat(500_000)}${']'.repeat(500_000)}}`)],
  },
  {
    name: 'endpoint: a name of combining marks',
    requests: () => [post('/v1/endpoints', fill('{"region":"loc","name":"a', '\u0301\u0316', '"}', bodyBytesMax / 8))],
  },
  {
    name: 'endpoint: 1 MiB that is not JSON',
    requests: () => [post('/v1/endpoints', fill('{"a":"', 'x\\n', '', bodyBytesMax))],
  },
  {
    name: 'destination: 1 MiB of text',
    requests: () => [
      post('/v1/destinations', fill('{"name":"', 'a-', '","bucket":"b","region":"local","role_arn":"x"}', bodyBytesMax)),
    ],
  },
  {
    name: 'exchange: 1 MiB of key',
    requests: () => [post('/v1/token/exchange', fill('{"api_key":"', 'a', '"}', bodyBytesMax))],
  },
  {
    name: 'query: thousands of tags',
    requests: () => [{ method: 'GET', path: fill('/v1/views?tag=a', '&tag=%01', '', 15_000) }],
  },
  {
    name: 'pages at a large offset',
    requests: () => times(20, () => ({ method: 'GET', path: '/v1/views?status=all&limit=200&offset=9007199254740991' })),
  },
  { name: 'the description, 20 times', requests: () => times(20, () => ({ method: 'GET', path: '/openapi/openapi.json' })) },
  { name: 'the description as YAML', requests: () => times(20, () => ({ method: 'GET', path: '/openapi/openapi.yaml' })) },
]
