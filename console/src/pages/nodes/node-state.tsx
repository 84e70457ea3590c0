import type { Node } from '../../api/nodes.ts'
import { Badge, type Tone } from '../../design/badge.tsx'

type State = { readonly word: string; readonly tone: Tone; readonly reasons: readonly string[] }

/** The state of a node in one word, and why. */
export function stateOf({ healthy, credential, ingest, delivery }: Node): State {
  const reasons = [ingest, delivery].flatMap((process) => process?.reasons ?? [])
  if (credential === 'revoked') return { word: 'revoked', tone: 'none', reasons: ['control refuses its credential'] }
  if (ingest === null && delivery === null) return { word: 'new', tone: 'note', reasons: ['it has not reported yet'] }
  if (healthy)
    return ingest?.leaving === true
      ? { word: 'leaving', tone: 'calm', reasons }
      : { word: 'healthy', tone: reasons.length === 0 ? 'good' : 'note', reasons }
  if (reasons.length > 0) return { word: 'unhealthy', tone: 'bad', reasons }
  const silent = [ingest?.healthy === true ? undefined : 'ingest', delivery?.healthy === true ? undefined : 'delivery']
  const missing = silent.filter((name) => name !== undefined)
  const why = missing.length === 0 ? 'its heartbeats stopped' : `${missing.join(' and ')} has not reported`
  return { word: 'silent', tone: 'bad', reasons: [why] }
}

export function NodeState({ node }: { readonly node: Node }) {
  const { word, tone, reasons } = stateOf(node)
  return (
    <span title={reasons.join('\n')}>
      <Badge tone={tone} dot>
        {word}
      </Badge>
    </span>
  )
}

/** The name of a node, or what its id begins with. */
export function labelOf({ id, name }: Pick<Node, 'id' | 'name'>): string {
  return name ?? shortId(id)
}

/** The part of an id by which people recognise it. */
export function shortId(id: string): string {
  return id.slice(0, 8)
}
