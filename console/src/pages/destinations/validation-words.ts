import type { Destination, ObjectStore, ValidationStep } from '../../api/destinations.ts'

const labels = {
  assume_role: 'Assume the role',
  allowlist: 'Find it on the allowlist',
  kms: 'Use the encryption key',
  write: 'Write an object',
  list: 'Find it in the list',
  read: 'Read it back',
  if_absent: 'Write it only if it is not there',
  multipart: 'Upload in parts',
  delete: 'Delete it',
} as const satisfies Record<ValidationStep['step'], string>

export function labelOf(step: ValidationStep['step']): string {
  return labels[step]
}

/** Returns the steps that a validation will have, to show them while it runs. */
export function expectedSteps({ encryption }: Destination, { kind, has_roles }: ObjectStore): readonly ValidationStep['step'][] {
  if (kind === 'directory') return ['write', 'list', 'read', 'if_absent', 'delete']
  const key = encryption === 'kms' ? (['kms'] as const) : []
  return [has_roles ? 'assume_role' : 'allowlist', ...key, 'write', 'list', 'read', 'if_absent', 'multipart', 'delete']
}

/** Messages of the API begin in lower case. */
export function sentence(text: string): string {
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}.`
}
