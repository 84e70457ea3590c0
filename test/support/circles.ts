/** The edges of each node. */
export type Graph = ReadonlyMap<string, ReadonlySet<string>>

/** Returns one path `a → b → a` for each group of nodes that reach each other, and [] if there is no circle. */
export function findCircles(graph: Graph): readonly string[] {
  const inCircle = new Set<string>()
  return [...graph.keys()].flatMap((node) => {
    if (inCircle.has(node)) return []
    const path = shortestWayBack(graph, node)
    for (const step of path) inCircle.add(step)
    return path.length === 0 ? [] : [[...path, node].join(' → ')]
  })
}

/** Returns the nodes of the shortest circle through `start`, beginning with `start`. */
function shortestWayBack(graph: Graph, start: string): readonly string[] {
  const cameFrom = new Map<string, string>()
  const queue = [start]
  for (const node of queue) {
    for (const next of graph.get(node) ?? []) {
      if (next === start) return wayTo(node, cameFrom)
      if (cameFrom.has(next)) continue
      cameFrom.set(next, node)
      queue.push(next)
    }
  }
  return []
}

function wayTo(node: string, cameFrom: ReadonlyMap<string, string>): readonly string[] {
  const before = cameFrom.get(node)
  return before === undefined ? [node] : [...wayTo(before, cameFrom), node]
}
