import type { Role } from '../api/session.ts'
import type { Choice } from '../design/field.tsx'

export const roleChoices: readonly Choice<Role>[] = [
  { value: 'owner', label: 'Owner: everything, also people' },
  { value: 'member', label: 'Member: everything but people' },
  { value: 'viewer', label: 'Viewer: looks, changes nothing' },
]
