import { Badge, type Tone } from './badge.tsx'

/** The states of the product, and the tone of each. */
const tones = {
  active: 'good',
  valid: 'good',
  published: 'good',
  degraded: 'warn',
  pending: 'warn',
  failed: 'bad',
  deploying: 'note',
  running: 'note',
  succeeded: 'good',
  draining: 'calm',
  paused: 'none',
  canceled: 'none',
  draft: 'none',
  archived: 'none',
  deleted: 'none',
  revoked: 'none',
} as const satisfies Readonly<Record<string, Tone>>

export type Status = keyof typeof tones

export function StatusBadge({ status }: { readonly status: Status }) {
  return (
    <Badge tone={tones[status]} dot>
      {status}
    </Badge>
  )
}
