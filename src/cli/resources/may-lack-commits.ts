/** Returns what to say about a list of what was delivered, while commits may be missing in it. */
export function mayLackCommits(since: string): string {
  return `Some of what was delivered since ${since} may be missing here: the database may lack its commits. Unless control records them within minutes, the operator has to run inlet commits rebuild.`
}
