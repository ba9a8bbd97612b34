package retrieval

// Chance is how likely a question needs what is so similar to it, see Weights.
var Chance = chance
