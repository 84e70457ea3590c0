/**
 * Names in the copy store, all below `<prefix>/<node id>/`.
 *
 *     writer                      what the node itself says of its objects: writer-state.ts
 *     fence/<number>              the writers that had begun before acknowledge nothing more: fences.ts
 *     <incarnation>/<number>      an object: copy-object.ts
 *
 * An incarnation is new for each start of the process. Its numbers begin at 0 and have no gap.
 */
const digits = 20

export function copyFolder(prefix: string, nodeId: string): string {
  return prefix === '' ? `${nodeId}/` : `${prefix}/${nodeId}/`
}

export function copyName(folder: string, incarnation: string, number: number): string {
  return `${folder}${incarnation}/${padded(number)}`
}

export function writerName(folder: string): string {
  return `${folder}writer`
}

export function fenceName(folder: string, number: number): string {
  return `${folder}fence/${padded(number)}`
}

function padded(number: number): string {
  return String(number).padStart(digits, '0')
}
